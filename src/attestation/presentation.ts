/** A verified presentation, as it travels from the worker that verified it. */

/** A revealed part of a transcript. */
export interface Revealed {
  /** First byte, from 0. */
  readonly start: number;
  /** First byte after it. */
  readonly end: number;
  /** The bytes as UTF-8; what is none is U+FFFD. */
  readonly text: string;
}

/** What a presentation proves. */
export interface VerifiedPresentation {
  /** Name that the server's certificate covers; undefined when the presentation carries no identity. */
  readonly serverName: string | undefined;
  /** Seconds since the epoch. */
  readonly connectionTimeS: number;
  readonly sentLength: number;
  readonly recvLength: number;
  /** Algorithm, colon, hex. */
  readonly notaryKey: string;
  /** 32 hex digits. */
  readonly attestationId: string;
  readonly sent: readonly Revealed[];
  readonly recv: readonly Revealed[];
}

/** What the worker makes of a presentation; `refused` says why it does not verify. */
export type Verdict = { readonly presentation: VerifiedPresentation } | { readonly refused: string };

/** Code of the error that a worker thread ends with where the library trapped at a presentation. */
export const trappedCode = "LIBRARY_TRAPPED";
