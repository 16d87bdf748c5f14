/** A request and the way to answer it, whichever HTTP carries it: all that the protocols know of either. */
import type { Arrival, Permit } from "../gate.js";

/** The body of an answer. */
export interface HttpResponseBody {
  /** Nothing where there is none. */
  readonly body?: string | Buffer | undefined;
  /** The body's bytes are kept elsewhere, and shared with other answers. */
  readonly isShared?: boolean | undefined;
}

/** A whole answer. */
export interface HttpResponse extends HttpResponseBody {
  readonly status: number;
  /** A flat list of names and values. */
  readonly headers: readonly string[];
  /** Trailers, a flat list of names and values; over HTTP/2 only. */
  readonly trailers?: readonly string[];
}

/** A look at the first bytes of a body, as soon as they are there. */
export interface Beginning {
  readonly bytes: number;
  /** Throws the Failure that says why the rest need not come. */
  check(bytes: Buffer): void;
}

export interface Exchange extends Arrival {
  readonly isHttp2: boolean;
  /** The HTTP method, in upper case. */
  readonly method: string;
  /** The path as it was sent, without origin and query. */
  readonly path: string;
  /** The query as it was sent, without the mark. */
  readonly query: string;
  /** Request headers by lower-case name. */
  headerEntries(): Iterable<readonly [name: string, value: string]>;
  /**
   * Reads the whole body, for which the lease takes room.
   *
   * @throws Failure PAYLOAD_TOO_LARGE as soon as more than `maxBytes` are announced or sent; REQUEST_TIMEOUT when it
   * does not arrive in time; INVALID_REQUEST when the caller goes away before its end; OVERLOADED without room; and what
   * the look at its beginning throws.
   */
  readBytes(maxBytes: number, lease: Pick<Permit, "reserveRequestBytes">, beginning?: Beginning): Promise<Buffer>;
  /** How long the body will be, as its sender says; 0 where he does not. */
  readonly contentLength: number;
  /** Throws the body away as it comes; resolves at its end, or when the caller goes away or takes too long for it. */
  discardBody(): Promise<void>;
  /** The body in pieces, as they arrive. Throws when the caller goes away before its end. */
  readChunks(): AsyncIterable<Uint8Array>;
  /** Answers. Nothing happens when the caller has gone, or an answer was begun. */
  send(answer: HttpResponse): void;
  /** Begins an answer whose body follows in pieces. */
  begin(status: number, headers: readonly string[]): void;
  /** Sends a piece; resolves when there is room for the next, also when the caller has gone. */
  write(piece: Uint8Array): Promise<void>;
  /** Ends an answer that was begun, over HTTP/2 with trailers: a flat list of names and values. */
  finish(trailers?: readonly string[]): void;
  /** An answer was begun. */
  readonly headersSent: boolean;
  /** The answer is out, or the caller has gone. */
  readonly isClosed: boolean;
}

/** Answers an exchange; false when it is another's to answer. */
export type Handler = (exchange: Exchange) => boolean;

/** Answers of these statuses end with their headers, and have no length. */
export const bodiless: ReadonlySet<number> = new Set([204, 304]);

/** Answers longer than this are written in turns, so that what else the node answers comes in between. */
export const turnBytes = 64 * 1024;
