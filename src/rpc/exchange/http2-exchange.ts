/** Exchange over one HTTP/2 stream. */
import { constants, type IncomingHttpHeaders, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Connection, Permit } from "../gate.js";
import { discardBody, iterateChunks, readBody } from "./body.js";
import { type HttpResponse, type EarlyCheck, bodiless, type Exchange, maxTickBytes } from "./exchange.js";
import { HttpExchange } from "./http-exchange.js";
import { writeInPieces, writePiece } from "./write-in-pieces.js";

/** Time that a client may continue to send after the response, in milliseconds. */
const stillSendingMs = 1_000;

export class Http2Exchange extends HttpExchange implements Exchange {
  readonly isHttp2 = true;
  readonly method: string;

  constructor(
    requestId: string,
    connection: Connection,
    private readonly stream: ServerHttp2Stream,
    protected readonly headers: IncomingHttpHeaders,
    /** Called with the size of each body chunk that is read. */
    private readonly onBody: (bytes: number) => void,
  ) {
    super(requestId, connection, headers[":path"] ?? "/", stream);
    this.method = headers[":method"] ?? "GET";
  }

  async readBytes(
    maxBytes: number,
    permit: Pick<Permit, "reserveRequestBytes">,
    earlyCheck?: EarlyCheck,
  ): Promise<Buffer> {
    const reserveRequestBytes = (bytes: number): void => {
      this.onBody(bytes);
      permit.reserveRequestBytes(bytes);
    };
    return await readBody(this.stream, this.contentLength, maxBytes, { reserveRequestBytes }, earlyCheck);
  }

  async discardBody(): Promise<void> {
    await discardBody(this.stream, (bytes) => this.onBody(bytes));
  }

  async *readChunks(): AsyncIterable<Uint8Array> {
    for await (const piece of iterateChunks(this.stream)) {
      this.onBody(piece.length);
      yield piece;
    }
  }

  send({ status, headers, body, trailers }: HttpResponse): void {
    const { stream } = this;
    if (!this.canStart) {
      return;
    }
    const fields = toFields(headers, status);
    if (trailers === undefined && !bodiless.has(status)) {
      fields["content-length"] = body === undefined ? 0 : Buffer.byteLength(body);
    }
    if (body === undefined || body.length === 0 || this.method === "HEAD") {
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
    if (body.length <= maxTickBytes) {
      stream.end(body);
    } else {
      writeInPieces(stream, typeof body === "string" ? Buffer.from(body) : body);
    }
  }

  start(status: number, headers: readonly string[]): void {
    if (this.canStart) {
      this.stream.respond(toFields(headers, status), { waitForTrailers: true });
    }
  }

  async write(piece: Uint8Array): Promise<void> {
    await writePiece(this.stream, piece);
  }

  finish(trailers: readonly string[] = []): void {
    const { stream } = this;
    if (stream.destroyed) {
      return;
    }
    this.endWith(trailers);
    stream.end();
  }

  get headersSent(): boolean {
    return this.stream.headersSent;
  }

  get isClosed(): boolean {
    return this.stream.destroyed;
  }

  abort(): void {
    this.stream.close(constants.NGHTTP2_CANCEL);
    this.stream.destroy();
  }

  private get canStart(): boolean {
    const { stream } = this;
    return !(stream.headersSent || stream.destroyed || stream.closed);
  }

  private endWith(trailers: readonly string[]): void {
    this.stream.once("wantTrailers", () => {
      this.stream.sendTrailers(toFields(trailers));
      setImmediate(() => this.stopReading());
    });
  }

  /**
   * Discards the data that a client still sends after the response. After 1 s the stream is closed, because it would
   * stay open otherwise. Closing it immediately would be too early: some clients take the reset for the response.
   */
  private stopReading(): void {
    const { stream } = this;
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
