/** How far peers are. A status cannot claim a block that no authority has signed. */
import type { Status } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { sha256 } from "../base/hash.js";
import { createRecentCache } from "../base/recent-cache.js";
import { Failure } from "../rpc/errors.js";

/** The newest block of a node, as an authority signed it. */
export interface Head {
  readonly number: bigint;
  /** 0x and 64 lower-case hex digits. */
  readonly hash: string;
}

/** How far a node is, as it was proved. */
export interface ReadStatus {
  readonly head: Head;
  readonly accepting: boolean;
  /** Its clock less this process's own that nobody sets, in milliseconds; undefined where it did not say. */
  readonly clockOffsetMs?: number | undefined;
}

/** Reads, and remembers, the header of a block that its proposer signed. Throws a Failure for any other. */
export type ReadHeader = (signed: { readonly header: Uint8Array; readonly signature: Uint8Array }) => {
  readonly number: bigint;
  readonly proposer: string;
};

/** What statuses are read against. */
export interface StatusReaderParts {
  readonly readHeader: ReadHeader;
  readonly authorities: readonly string[];
  readonly genesisHash: string;
  /** A clock that nobody sets. */
  readonly monotonicMs: () => number;
}

/** Most evidence of forks in a status; of more no more is looked at. */
export const maxEvidence = 2;
/** Heads that were verified: peers have the same one most of the time. */
const maxKnownHeads = 32;

/**
 * Builds the function that reads a status.
 *
 * It throws Failure INVALID_SIGNATURE when the head is none that an authority has signed, or the evidence is none.
 */
export function createStatusReader({ readHeader, authorities, genesisHash, monotonicMs }: StatusReaderParts) {
  const known = createRecentCache<Head>(maxKnownHeads);

  function read(header: Uint8Array, signature: Uint8Array): Head {
    const proof = sha256(Buffer.concat([header, signature]));
    let head = known.get(proof);
    if (head === undefined) {
      const { number, proposer } = readHeader({ header, signature });
      if (!authorities.includes(proposer)) {
        throw new Failure("INVALID_SIGNATURE", "The head was signed by no authority of this network.");
      }
      head = { number, hash: sha256(header) };
      known.set(proof, head);
    }
    return head;
  }

  return ({ headHeader, headSignature, accepting, timeMs, evidence }: Status): ReadStatus => {
    for (const { header, signature, otherHeader, otherSignature } of evidence.slice(0, maxEvidence)) {
      read(header, signature);
      read(otherHeader, otherSignature);
    }
    const head = headHeader.length === 0 ? { number: 0n, hash: genesisHash } : read(headHeader, headSignature);
    return { head, accepting, clockOffsetMs: timeMs === 0n ? undefined : Number(timeMs) - monotonicMs() };
  };
}
