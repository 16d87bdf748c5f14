/**
 * Headers that authorities have signed, wherever they came in: of blocks that were applied, made or refused, and of the
 * heads that peers tell of. Two of one number by one key are a fork.
 */
import { createLruCache } from "../../base/caches/lru-cache.js";

/** A header whose signature was verified. */
export interface SignedHeader {
  readonly number: bigint;
  /** Public key that signed it. */
  readonly proposer: string;
  /** Of the block: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  /** As it was signed. */
  readonly header: Uint8Array;
  readonly signature: Uint8Array;
}

/** A header to keep: its bytes are often part of those of a whole block, which would be kept with them. */
export function copyHeader(signed: SignedHeader): SignedHeader {
  return { ...signed, header: new Uint8Array(signed.header), signature: new Uint8Array(signed.signature) };
}

export interface SignedHeadersDeps {
  readonly authorities: readonly string[];
  /** The header of a block that is in the database; undefined where there is none. */
  readonly storedHeader: (number: bigint) => Promise<SignedHeader | undefined>;
  /** Hears of two different headers of one number, signed by one key. */
  readonly onFork: (one: SignedHeader, other: SignedHeader) => void;
  /** Hears that the database did not answer. */
  readonly onError: (error: unknown) => void;
}

/** What was heard since this process began. */
export interface SignedHeaders {
  /** Hears of a header that came from elsewhere; one of somebody who is no authority is nobody's business. */
  hear(signed: SignedHeader): void;
  /** Hears of a block that is in the database now. */
  applied(signed: SignedHeader): void;
  /** Number of the newest; 0 while there is none. Whoever told of it: it was signed, so it was made. */
  newest(): bigint;
}

/** Headers that are remembered, beside those in the database. */
const maxRemembered = 1_024;

export function createSignedHeaders(deps: SignedHeadersDeps): SignedHeaders {
  const { authorities, storedHeader, onFork, onError } = deps;
  const remembered = createLruCache<SignedHeader>(maxRemembered);
  let newest = 0n;

  /** Remembers a header; false when it was known. */
  function remember(signed: SignedHeader): boolean {
    if (!authorities.includes(signed.proposer)) {
      return false;
    }
    newest = signed.number > newest ? signed.number : newest;
    const name = `${signed.number}:${signed.proposer}`;
    const known = remembered.get(name);
    if (known === undefined) {
      remembered.set(name, copyHeader(signed));
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
    hear(signed) {
      if (remember(signed)) {
        compareWithStored(signed).catch(onError);
      }
    },
    applied(signed) {
      remember(signed);
    },
    newest: () => newest,
  };
}
