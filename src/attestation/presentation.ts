/** Types of a verified presentation, as the worker thread returns it. */

export interface Revealed {
  /** Offset of the first byte, from 0. */
  readonly start: number;
  /** Offset after the last byte. */
  readonly end: number;
  /** Bytes decoded as UTF-8; invalid sequences become U+FFFD. */
  readonly text: string;
}

export interface VerifiedPresentation {
  /** Server name that the certificate covers; undefined if the presentation carries no identity. */
  readonly serverName: string | undefined;
  /** Time of the connection in seconds since the epoch. */
  readonly connectionTimeS: number;
  readonly sentLength: number;
  readonly recvLength: number;
  /** Key of the notary: algorithm, colon, hex. */
  readonly notaryKey: string;
  /** ID of the attestation: 32 hex digits. */
  readonly attestationId: string;
  readonly sent: readonly Revealed[];
  readonly recv: readonly Revealed[];
}

/** Result of a verification; `rejected` is the reason why a presentation does not verify. */
export type Verdict = { readonly presentation: VerifiedPresentation } | { readonly rejected: string };

/** Error code of a worker thread that ended because the library trapped on a presentation. */
export const trappedCode = "LIBRARY_TRAPPED";
