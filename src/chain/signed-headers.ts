/** Headers that authorities have signed, wherever they came in: of blocks applied, made or refused, and of peers' heads. */

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

/** What was heard since this process began. */
export interface SignedHeaders {
  /** Hears of a header; one of somebody who is no authority is nobody's business. */
  hear(signed: SignedHeader): void;
  /** Number of the newest; 0 while there is none. Whoever told of it: it was signed, so it was made. */
  newest(): bigint;
}

export function createSignedHeaders(authorities: readonly string[]): SignedHeaders {
  let newest = 0n;
  return {
    hear({ number, proposer }) {
      if (authorities.includes(proposer) && number > newest) {
        newest = number;
      }
    },
    newest: () => newest,
  };
}
