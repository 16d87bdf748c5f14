/** HTTP request and its response, independent of the HTTP version, as the protocols see them. */
import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { Readable } from "node:stream";
import { RpcError } from "../errors.js";
import type { Arrival, Connection, Permit } from "../gate.js";
import { bodyRejected, discardBody, type EarlyCheck, iterateChunks, readBody } from "./body.js";
import { writePiece } from "./pacing.js";
import type { RequestHeader } from "../request-headers.js";

export interface HttpResponseBody {
  readonly body?: string | Buffer | undefined;
  /** True if the bytes are stored elsewhere and shared with other responses. */
  readonly isShared?: boolean | undefined;
}

export interface HttpResponse extends HttpResponseBody {
  readonly status: number;
  /** Headers, a flat list of names and values. */
  readonly headers: readonly string[];
  /** Trailers, a flat list of names and values; over HTTP/2 only. */
  readonly trailers?: readonly string[];
}

/**
 * Bodies in tiny pieces: the number of chunks after which their mean size in bytes is checked, and the penalties, so
 * that two such bodies within a second lead to a ban.
 */
const tiny = { maxChunks: 4_096, meanBytes: 32, penalties: 300 };

export abstract class Exchange implements Arrival {
  abstract readonly isHttp2: boolean;
  abstract readonly method: string;
  /** Path as sent, without origin and query. Starts with one slash. */
  readonly path: string;
  /** Query as sent, without the question mark. */
  readonly query: string;
  protected abstract readonly headers: IncomingHttpHeaders;
  /** Values of the Host header, one for each line; of `:authority` over HTTP/2. */
  abstract readonly hosts: readonly string[];
  /** True if HTTP requires a Host header. */
  abstract readonly requiresHost: boolean;
  /** True if the client waits for 100 before it sends the body, and the node has not sent it. */
  awaitsContinue = false;
  protected abstract readonly source: Readable;
  /** True if the client sends a body. */
  protected abstract readonly hasBody: boolean;
  private isBodyRead = false;
  private bodyFailure: RpcError | undefined;
  private closeListeners: (() => void)[] | undefined;

  /**
   * @param url path and query, without an origin.
   * @param originalUrl path and query as sent, before a mounting server removed its own path.
   */
  protected constructor(
    readonly requestId: string,
    readonly connection: Connection,
    url: string,
    private readonly out: ServerResponse | ServerHttp2Stream,
    readonly originalUrl = url,
  ) {
    const mark = url.indexOf("?");
    const path = mark < 0 ? url : url.slice(0, mark);
    this.path = startWithSlash(path);
    this.query = mark < 0 ? "" : url.slice(mark + 1);
  }

  header(name: RequestHeader): string | undefined {
    return this.headerText(name);
  }

  private headerText(name: string): string | undefined {
    const value = this.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  }

  /** Returns the request headers by lowercase name, without the pseudo-headers of HTTP/2. */
  headerEntries(): [name: string, value: string][] {
    return Object.keys(this.headers)
      .filter((name) => !name.startsWith(":"))
      .map((name) => [name, this.headerText(name) ?? ""]);
  }

  /** Length of the body in bytes, as announced by the client; 0 if not announced. */
  get contentLength(): number {
    return Number(this.headers["content-length"] ?? 0);
  }

  get isIncomplete(): boolean {
    return !this.isBodyRead && this.hasBody && !bodilessMethods.has(this.method);
  }

  /**
   * Reads the complete body and reserves its bytes with the permit, which occupies its slot then.
   *
   * @throws RpcError PAYLOAD_TOO_LARGE as soon as more than `maxBytes` are announced or received; REQUEST_TIMEOUT if
   * the body arrives too slowly; INVALID_REQUEST if the client disconnects early; OVERLOADED without capacity; the error
   * of {@link rejectBody}; and any error of the early check.
   */
  async readBytes(
    maxBytes: number,
    permit: Pick<Permit, "occupySlot" | "reserveRequestBytes">,
    earlyCheck?: EarlyCheck,
  ): Promise<Buffer> {
    this.checkBody();
    const countChunk = this.createChunkCount();
    const onBytes = (bytes: number): void => {
      countChunk(bytes);
      permit.reserveRequestBytes(bytes);
    };
    if (this.contentLength <= maxBytes) {
      this.requestBody();
    }
    const body = await readBody(this.source, this.contentLength, maxBytes, onBytes, earlyCheck);
    this.isBodyRead = true;
    permit.occupySlot();
    return body;
  }

  /** Discards the body as it arrives. Resolves at its end, or if the client disconnects or takes too long. */
  async discardBody(): Promise<void> {
    if (this.bodyFailure === undefined) {
      await discardBody(this.source, this.createChunkCount());
    }
  }

  /** Yields the chunks of the body as they arrive. Throws if the client disconnects before the end. */
  async *readChunks(): AsyncGenerator<Uint8Array> {
    this.checkBody();
    this.requestBody();
    for await (const chunk of iterateChunks(this.source)) {
      this.countBody(chunk.length);
      yield chunk;
    }
  }

  /** Ends the body with an error, because the rest of it cannot be read. */
  rejectBody(failure: RpcError): void {
    this.bodyFailure = failure;
    this.source.emit(bodyRejected, failure);
  }

  private checkBody(): void {
    if (this.bodyFailure !== undefined) {
      throw this.bodyFailure;
    }
  }

  /** Sends 100 to a client that waits for it. */
  private requestBody(): void {
    if (this.awaitsContinue) {
      this.awaitsContinue = false;
      this.sendContinue();
    }
  }

  protected abstract sendContinue(): void;

  /**
   * Creates a function that is called with the size of each chunk of the body. It throws RpcError INVALID_REQUEST if a long
   * body arrives in pieces of few bytes, of which each costs as much as a long one.
   */
  private createChunkCount(): (bytes: number) => void {
    let [chunks, totalBytes] = [0, 0];
    return (bytes) => {
      this.countBody(bytes);
      chunks++;
      totalBytes += bytes;
      if (chunks % tiny.maxChunks === 0 && totalBytes / chunks < tiny.meanBytes) {
        this.connection.penalize(tiny.penalties);
        throw new RpcError(
          "INVALID_REQUEST",
          `The request body arrives in pieces of less than ${tiny.meanBytes} bytes.`,
        );
      }
    };
  }

  /** Called with the size of each body chunk that is read. */
  protected countBody(_bytes: number): void {}

  /** Sends a complete response. Does nothing if the client has disconnected or a response has started. */
  abstract send(response: HttpResponse): void;

  abstract start(status: number, headers: readonly string[]): void;

  /** Sends a piece of the body. Resolves when the next piece may be sent, or if the client has disconnected. */
  async write(piece: Uint8Array): Promise<void> {
    await writePiece(this.out, piece);
  }

  /**
   * Writes a piece of a stream, and reserves its bytes until the piece is sent.
   *
   * @param start starts the response if it has not started. Called after the reservation, so that an error response is
   * still possible.
   * @throws RpcError if no bytes can be reserved.
   */
  async writeReserved(
    permit: Pick<Permit, "reserveResponseBytes" | "releaseResponseBytes">,
    piece: Uint8Array,
    start: () => void,
  ): Promise<void> {
    permit.reserveResponseBytes(piece.length);
    start();
    if (!this.isClosed) {
      await this.write(piece);
    }
    permit.releaseResponseBytes(piece.length);
  }

  /** Ends a started response, over HTTP/2 with trailers: a flat list of names and values. */
  abstract finish(trailers?: readonly string[]): void;

  get headersSent(): boolean {
    return this.out.headersSent;
  }

  /** True if the response is sent or the client has disconnected. */
  abstract readonly isClosed: boolean;

  abstract abort(): void;

  /** Calls the listener on close, or immediately if already closed. A batch adds one for each of its requests. */
  onClose(listener: () => void): void {
    if (this.out.closed) {
      listener();
    } else if (this.closeListeners === undefined) {
      const listeners = [listener];
      this.closeListeners = listeners;
      this.out.once("close", () => listeners.forEach((call) => call()));
    } else {
      this.closeListeners.push(listener);
    }
  }
}

/**
 * Returns the path with one slash at its start. Proxies that join a base path `/` and a path send several, and no route
 * starts with an empty segment.
 */
export function startWithSlash(path: string): string {
  return path.startsWith("/") && path[1] !== "/" ? path : path.replace(/^\/*/, "/");
}

/** Handles an exchange; returns false to leave the exchange to another handler. */
export type Handler = (exchange: Exchange) => boolean;

/** Methods whose body is never read. */
const bodilessMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** Statuses of responses that have neither a body nor a Content-Length. */
export const bodiless: ReadonlySet<number> = new Set([204, 304]);

/**
 * Creates a generator of request IDs. A random prefix separates processes; a counter is cheap, since few IDs are ever
 * used.
 */
export function createRequestIds(): () => string {
  const prefix = randomBytes(4).toString("hex");
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}
