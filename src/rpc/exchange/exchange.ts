/** HTTP request and its response, independent of the HTTP version, as the protocols see them. */
import type { Arrival, Permit } from "../gate.js";

export interface HttpResponseBody {
  /** Content of the body; undefined if empty. */
  readonly body?: string | Buffer | undefined;
  /** True if the bytes are stored elsewhere and shared with other responses. */
  readonly isShared?: boolean | undefined;
}

/** Complete response. */
export interface HttpResponse extends HttpResponseBody {
  readonly status: number;
  /** Headers, a flat list of names and values. */
  readonly headers: readonly string[];
  /** Trailers, a flat list of names and values; over HTTP/2 only. */
  readonly trailers?: readonly string[];
}

/** Early check of the first bytes of a body. */
export interface EarlyCheck {
  readonly bytes: number;
  /** Throws an RpcError if the rest of the body should be rejected. */
  check(bytes: Buffer): void;
}

export interface Exchange extends Arrival {
  readonly isHttp2: boolean;
  /** HTTP method, in upper case. */
  readonly method: string;
  /** Path as sent, without origin and query. */
  readonly path: string;
  /** Path and query as sent, before a mounting server removed its own path. */
  readonly originalUrl: string;
  /** Query as sent, without the question mark. */
  readonly query: string;
  /** Returns the request headers by lowercase name. */
  headerEntries(): Iterable<readonly [name: string, value: string]>;
  /**
   * Reads the complete body and reserves its bytes with the permit.
   *
   * @throws RpcError PAYLOAD_TOO_LARGE as soon as more than `maxBytes` are announced or received; REQUEST_TIMEOUT if
   * the body takes too long; INVALID_REQUEST if the client disconnects early; OVERLOADED without capacity; and any
   * error of the early check.
   */
  readBytes(maxBytes: number, permit: Pick<Permit, "reserveRequestBytes">, earlyCheck?: EarlyCheck): Promise<Buffer>;
  /** Length of the body in bytes, as announced by the client; 0 if not announced. */
  readonly contentLength: number;
  /** Discards the body as it arrives. Resolves at its end, or if the client disconnects or takes too long. */
  discardBody(): Promise<void>;
  /** Yields the chunks of the body as they arrive. Throws if the client disconnects before the end. */
  readChunks(): AsyncIterable<Uint8Array>;
  /** Sends a complete response. Does nothing if the client has disconnected or a response has started. */
  send(response: HttpResponse): void;
  /** Starts a response whose body follows in pieces. */
  start(status: number, headers: readonly string[]): void;
  /** Sends a piece of the body. Resolves when the next piece may be sent, or if the client has disconnected. */
  write(piece: Uint8Array): Promise<void>;
  /** Ends a started response, over HTTP/2 with trailers: a flat list of names and values. */
  finish(trailers?: readonly string[]): void;
  /** True if a response has started. */
  readonly headersSent: boolean;
  /** True if the response is sent or the client has disconnected. */
  readonly isClosed: boolean;
}

/** Handles an exchange; returns false to leave the exchange to another handler. */
export type Handler = (exchange: Exchange) => boolean;

/** Statuses of responses that have neither a body nor a Content-Length. */
export const bodiless: ReadonlySet<number> = new Set([204, 304]);

/** Limit on the bytes written in one tick. Longer responses are split, so that other requests are served in between. */
export const maxTickBytes = 64 * 1024;
