/**
 * Signed headers from all sources: applied, produced and rejected blocks, and the heads that peers report. Two
 * different headers with the same number and key prove a fork.
 */
import { createLruCache } from "../../base/caches/lru-cache.js";

/** Header with a verified signature. */
export interface SignedHeader {
  readonly number: bigint;
  /** Public key of the signer. */
  readonly proposer: string;
  /** Hash of the block: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  /** Encoded header, as signed. */
  readonly header: Uint8Array;
  readonly signature: Uint8Array;
}

/**
 * Copies a header for storage in memory. Its bytes are often a view of a complete block, which would stay in memory
 * too.
 */
export function copyHeader(signed: SignedHeader): SignedHeader {
  return { ...signed, header: new Uint8Array(signed.header), signature: new Uint8Array(signed.signature) };
}

export interface SignedHeadersDeps {
  readonly authorities: readonly string[];
  /** Returns the header of a stored block; undefined if there is none. */
  readonly storedHeader: (number: bigint) => Promise<SignedHeader | undefined>;
  /** Called for two different headers with the same number, signed by one key. */
  readonly onFork: (one: SignedHeader, other: SignedHeader) => void;
  /** Called when the database cannot be read. */
  readonly onError: (error: unknown) => void;
}

/** Signed headers since the process started. */
export interface SignedHeaders {
  /**
   * Adds a header from another node, and compares it with the stored chain. Ignores signers that are no authorities.
   */
  addReceived(signed: SignedHeader): void;
  /** Adds the header of a block that was stored. */
  addApplied(signed: SignedHeader): void;
  /**
   * Returns the highest number of any signed header, 0 if there is none. Its source need not be trusted: an authority
   * signed it.
   */
  latestNumber(): bigint;
}

/** Limit on headers cached in memory. */
const maxCached = 1_024;

export function createSignedHeaders(deps: SignedHeadersDeps): SignedHeaders {
  const { authorities, storedHeader, onFork, onError } = deps;
  const cache = createLruCache<SignedHeader>(maxCached);
  let latestNumber = 0n;

  /**
   * Caches a header of an authority, and reports a fork if a different one with its number and signer is cached.
   * Returns true if none was cached.
   */
  function add(signed: SignedHeader): boolean {
    if (!authorities.includes(signed.proposer)) {
      return false;
    }
    latestNumber = signed.number > latestNumber ? signed.number : latestNumber;
    const key = `${signed.number}:${signed.proposer}`;
    const known = cache.get(key);
    if (known === undefined) {
      cache.set(key, copyHeader(signed));
      return true;
    }
    if (known.hash !== signed.hash) {
      onFork(known, copyHeader(signed));
    }
    return false;
  }

  async function compareWithStored(signed: SignedHeader): Promise<void> {
    const stored = await storedHeader(signed.number);
    if (stored !== undefined && stored.proposer === signed.proposer && stored.hash !== signed.hash) {
      onFork(stored, signed);
    }
  }

  return {
    addReceived(signed) {
      if (add(signed)) {
        compareWithStored(signed).catch(onError);
      }
    },
    addApplied(signed) {
      add(signed);
    },
    latestNumber: () => latestNumber,
  };
}
