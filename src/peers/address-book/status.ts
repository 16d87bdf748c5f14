/** How far peers are. A status cannot claim a block that no authority has signed. */
import type { HeadStatement, SignedHead } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { Status } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { sha256 } from "../../base/crypto/hash.js";
import { createLruCache } from "../../base/caches/lru-cache.js";
import { RpcError } from "../../rpc/errors.js";

/** The newest block of a node, as an authority signed it. */
export interface Head {
  readonly number: bigint;
  /** 0x and 64 lower-case hex digits. */
  readonly hash: string;
}

/** How far a node is, as it was proved. */
export interface ReadStatus {
  readonly head: Head;
  /** The oldest block whose transactions it says that it has. */
  readonly lowestBlock?: bigint | undefined;
  readonly accepting: boolean;
  /** When an authority said that this is its newest block, as the peer has it; 0 where it has no such word. */
  readonly statedMs: number;
  /** Its clock less this process's own that nobody sets, in milliseconds; undefined where it did not say. */
  readonly clockOffsetMs?: number | undefined;
}

/** A peer's identity and status, as its handshake proved them. */
export interface ProvenPeer {
  readonly identity: string;
  readonly connectionString: string;
  /** The endpoint that the peer names itself by. */
  readonly announced: string;
  /** Identifies the peer's process, in hex. */
  readonly instanceId: string;
  readonly status: ReadStatus;
}

/** Reads, and remembers, the header of a block that its proposer signed. Throws a Failure for any other. */
export type ReadHeader = (signed: { readonly header: Uint8Array; readonly signature: Uint8Array }) => {
  readonly number: bigint;
  readonly proposer: string;
};

/**
 * Hears of an authority's word, and gives what it says, which need not be true. Throws a Failure for one that no honest peer
 * passes on.
 *
 * @param from who sent it without being asked.
 */
export type HearStatement = (signed: SignedHead, from: string | undefined) => HeadStatement;

/**
 * Reads a status.
 *
 * @param from who sent it without being asked: the key of a verified peer, the empty text for all others together.
 * @throws Failure INVALID_SIGNATURE when the head is none that an authority has signed, or the evidence is none.
 */
export type StatusReader = (status: Status, from?: string) => ReadStatus;

/** What statuses are read against. */
export interface StatusReaderDeps {
  readonly readHeader: ReadHeader;
  readonly hearStatement: HearStatement;
  readonly authorities: readonly string[];
  readonly genesisHash: string;
  /** A clock that nobody sets. */
  readonly monotonicMs: () => number;
}

/** Most evidence of forks in a status; of more no more is looked at. */
export const maxEvidence = 2;
/** Heads that were verified: peers have the same one most of the time. */
const maxKnownHeads = 32;

export function createStatusReader(deps: StatusReaderDeps): StatusReader {
  const { readHeader, hearStatement, authorities, genesisHash, monotonicMs } = deps;
  const known = createLruCache<Head>(maxKnownHeads);

  function read(header: Uint8Array, signature: Uint8Array): Head {
    const proof = sha256(Buffer.concat([header, signature]));
    let head = known.get(proof);
    if (head === undefined) {
      const { number, proposer } = readHeader({ header, signature });
      if (!authorities.includes(proposer)) {
        throw new RpcError("INVALID_SIGNATURE", "The head was signed by no authority of this network.");
      }
      head = { number, hash: sha256(header) };
      known.set(proof, head);
    }
    return head;
  }

  return ({ headHeader, headSignature, accepting, timeMs, evidence, signedHead, lowestBlock }, from) => {
    for (const { header, signature, otherHeader, otherSignature } of evidence.slice(0, maxEvidence)) {
      read(header, signature);
      read(otherHeader, otherSignature);
    }
    const head = headHeader.length === 0 ? { number: 0n, hash: genesisHash } : read(headHeader, headSignature);
    const said = signedHead && hearStatement(signedHead, from);
    const statedMs = said?.hash === head.hash ? Number(said.timestampMs) : 0;
    return {
      head,
      lowestBlock,
      accepting,
      statedMs,
      clockOffsetMs: timeMs === 0n ? undefined : Number(timeMs) - monotonicMs(),
    };
  };
}
