/** Reads the chain state that peers report. A status cannot claim a block that no authority has signed. */
import type { HeadStatement, SignedHead } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { Status } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { sha256 } from "../../base/crypto/hash.js";
import { createLruCache } from "../../base/caches/lru-cache.js";
import { RpcError } from "../../rpc/errors.js";

/** Latest block of a node, as signed by an authority. */
export interface Head {
  readonly number: bigint;
  /** Hash of the block: 0x and 64 lowercase hex digits. */
  readonly hash: string;
}

/** Chain state of a node, after verification. */
export interface VerifiedStatus {
  readonly head: Head;
  /** First block whose transactions the node claims to have. */
  readonly lowestBlock: bigint;
  readonly accepting: boolean;
  /** Time of the latest signed head that the node has for this block; 0 if it has none. */
  readonly statedMs: number;
  /**
   * Clock of the node minus the monotonic clock of this process, in milliseconds; undefined if the node did not report
   * it.
   */
  readonly clockOffsetMs: number | undefined;
}

/** Identity and status of a peer, as proved by its handshake. */
export interface ProvenPeer {
  readonly identity: string;
  readonly connectionString: string;
  /** Endpoint that the peer announces for itself. */
  readonly announced: string;
  /** Id of the peer's process, in hex. */
  readonly instanceId: string;
  readonly status: VerifiedStatus;
}

/** Limit on the fork evidence in a status; further evidence is ignored. */
export const maxEvidence = 2;
/** Limit on the cached verified heads. Few are needed, because peers usually report the same head. */
const maxCachedHeads = 32;

export interface StatusReaderDeps {
  /**
   * Verifies that the proposer signed the header, and records the header for the detection of forks.
   *
   * @throws RpcError if the signature is invalid.
   */
  readonly verifyHeader: (signed: { readonly header: Uint8Array; readonly signature: Uint8Array }) => {
    readonly number: bigint;
    readonly proposer: string;
  };
  /**
   * Processes a signed head from a peer, and returns its content, which may be unverified.
   *
   * @param from sender of an unsolicited status; undefined for a response to a request.
   * @throws RpcError if no honest peer would relay the signed head.
   */
  readonly receiveSignedHead: (signed: SignedHead, from: string | undefined) => HeadStatement;
  readonly authorities: readonly string[];
  readonly genesisHash: string;
}

export type StatusReader = ReturnType<typeof createStatusReader>;

/** Creates the function that verifies a status. */
export function createStatusReader(deps: StatusReaderDeps) {
  const verifiedHeads = createLruCache<Head>(maxCachedHeads);

  function verifyHead(header: Uint8Array, signature: Uint8Array): Head {
    const cacheKey = sha256(Buffer.concat([header, signature]));
    let head = verifiedHeads.get(cacheKey);
    if (head === undefined) {
      const { number, proposer } = deps.verifyHeader({ header, signature });
      if (!deps.authorities.includes(proposer)) {
        throw new RpcError("INVALID_SIGNATURE", "The head was not signed by an authority of this network.");
      }
      head = { number, hash: sha256(header) };
      verifiedHeads.set(cacheKey, head);
    }
    return head;
  }

  /**
   * @param from sender of an unsolicited status: the key of a verified peer, or an empty string for all other senders.
   * @throws RpcError INVALID_SIGNATURE if no authority signed the head, or if the evidence is invalid.
   */
  return (status: Status, from?: string): VerifiedStatus => {
    const { headHeader, headSignature, accepting, timeMs, evidence, signedHead, lowestBlock } = status;
    for (const { header, signature, otherHeader, otherSignature } of evidence.slice(0, maxEvidence)) {
      verifyHead(header, signature);
      verifyHead(otherHeader, otherSignature);
    }
    const head =
      headHeader.length === 0 ? { number: 0n, hash: deps.genesisHash } : verifyHead(headHeader, headSignature);
    const statement = signedHead && deps.receiveSignedHead(signedHead, from);
    const statedMs = statement?.hash === head.hash ? Number(statement.timestampMs) : 0;
    const clockOffsetMs = timeMs === 0n ? undefined : Number(timeMs) - performance.now();
    return { head, lowestBlock, accepting, statedMs, clockOffsetMs };
  };
}
