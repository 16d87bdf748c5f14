import { constants, type IncomingHttpHeaders, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Connection } from "../gate.js";
import { bodiless, Exchange, type HttpResponse } from "./exchange.js";
import { writeBody } from "./pacing.js";

/** Time that a client may continue to send after the response, in milliseconds. */
const stillSendingMs = 1_000;

export class Http2Exchange extends Exchange {
  readonly isHttp2 = true;
  readonly method: string;

  constructor(
    requestId: string,
    connection: Connection,
    protected readonly source: ServerHttp2Stream,
    protected readonly headers: IncomingHttpHeaders,
    private readonly onBody: (bytes: number) => void,
  ) {
    super(requestId, connection, headers[":path"] ?? "/", source);
    this.method = headers[":method"] ?? "GET";
    this.awaitsContinue = this.hasBody && headers.expect?.toLowerCase() === "100-continue";
  }

  get hosts(): readonly string[] {
    const { ":authority": authority, host } = this.headers;
    return [authority, host].filter((value) => value !== undefined);
  }

  /** Clients of HTTP/2 may leave out the host. */
  get requiresHost(): boolean {
    return false;
  }

  protected sendContinue(): void {
    if (this.canStart) {
      this.source.additionalHeaders({ ":status": 100 });
    }
  }

  protected get hasBody(): boolean {
    return !this.source.endAfterHeaders;
  }

  protected override countBody(bytes: number): void {
    this.onBody(bytes);
  }

  send({ status, headers, body = "", trailers }: HttpResponse): void {
    if (!this.canStart) {
      return;
    }
    const stream = this.source;
    const fields = toFields(headers, status);
    if (trailers === undefined && !bodiless.has(status)) {
      fields["content-length"] = Buffer.byteLength(body);
    }
    if (body.length === 0 || this.method === "HEAD") {
      stream.once("finish", () => this.stopReading());
      stream.respond(trailers === undefined ? fields : toFields(trailers, status, fields), { endStream: true });
      return;
    }
    stream.respond(fields, { waitForTrailers: trailers !== undefined });
    if (trailers === undefined) {
      stream.once("finish", () => this.stopReading());
    } else {
      this.endWith(trailers);
    }
    writeBody(stream, body);
  }

  start(status: number, headers: readonly string[]): void {
    if (this.canStart) {
      // A response to HEAD ends with its headers.
      const isHead = this.method === "HEAD";
      this.source.respond(toFields(headers, status), isHead ? { endStream: true } : { waitForTrailers: true });
    }
  }

  finish(trailers: readonly string[] = []): void {
    if (!this.isClosed) {
      this.endWith(trailers);
      this.source.end();
    }
  }

  get isClosed(): boolean {
    return this.source.destroyed;
  }

  abort(): void {
    this.source.close(constants.NGHTTP2_CANCEL);
    this.source.destroy();
  }

  private get canStart(): boolean {
    return !(this.headersSent || this.isClosed || this.source.closed);
  }

  private endWith(trailers: readonly string[]): void {
    this.source.once("wantTrailers", () => {
      this.source.sendTrailers(toFields(trailers));
      setImmediate(() => this.stopReading());
    });
  }

  /**
   * Discards the data that a client still sends after the response. After 1 s the stream is closed, because it would
   * stay open otherwise. Closing it immediately would be too early: some clients take the reset for the response.
   */
  private stopReading(): void {
    const stream = this.source;
    if (stream.readableEnded || stream.endAfterHeaders || stream.destroyed) {
      return;
    }
    stream.resume();
    const timer = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), stillSendingMs);
    this.onClose(() => clearTimeout(timer));
  }
}

/** Converts a flat list of names and values to headers of node:http2. */
function toFields(list: readonly string[], status?: number, fields: OutgoingHttpHeaders = {}): OutgoingHttpHeaders {
  if (status !== undefined) {
    fields[":status"] = status;
  }
  for (let i = 0; i < list.length; i += 2) {
    fields[list[i]!.toLowerCase()] = list[i + 1];
  }
  return fields;
}
