/** Exchange over HTTP/1.1. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Connection, Permit } from "../gate.js";
import { discardBody, iterateChunks, readBody } from "./body.js";
import { type HttpResponse, type EarlyCheck, bodiless, type Exchange, maxTickBytes } from "./exchange.js";
import { HttpExchange } from "./http-exchange.js";
import { writeInPieces, writePiece } from "./write-in-pieces.js";

export class Http1Exchange extends HttpExchange implements Exchange {
  readonly isHttp2 = false;

  constructor(
    requestId: string,
    connection: Connection,
    // Express keeps the URL before it removes the path of a mount point.
    readonly request: IncomingMessage & { readonly originalUrl?: string },
    readonly response: ServerResponse,
  ) {
    super(requestId, connection, withoutOrigin(request.url ?? "/"), response, request.originalUrl);
    this.onClose(() => response.writableFinished || connection.penalize());
  }

  get method(): string {
    return this.request.method ?? "GET";
  }

  protected get headers(): IncomingHttpHeaders {
    return this.request.headers;
  }

  async readBytes(
    maxBytes: number,
    permit: Pick<Permit, "reserveRequestBytes">,
    earlyCheck?: EarlyCheck,
  ): Promise<Buffer> {
    return await readBody(this.request, this.contentLength, maxBytes, permit, earlyCheck);
  }

  async discardBody(): Promise<void> {
    await discardBody(this.request);
  }

  readChunks(): AsyncIterable<Uint8Array> {
    return iterateChunks(this.request);
  }

  send({ status, headers, body }: HttpResponse): void {
    if (this.headersSent || this.response.destroyed) {
      return;
    }
    const isEmpty = body === undefined || body.length === 0;
    const lengthBytes = isEmpty ? 0 : typeof body === "string" ? Buffer.byteLength(body) : body.length;
    this.writeHead(status, [
      ...headers,
      ...(bodiless.has(status) ? [] : ["Content-Length", String(lengthBytes)]),
      ...this.closingHeaders(),
    ]);
    if (isEmpty) {
      this.response.end();
    } else if (lengthBytes <= maxTickBytes || this.method === "HEAD") {
      this.response.end(body);
    } else {
      writeInPieces(this.response, typeof body === "string" ? Buffer.from(body) : body);
    }
  }

  start(status: number, headers: readonly string[]): void {
    if (!this.headersSent && !this.response.destroyed) {
      this.writeHead(status, [...headers, ...this.closingHeaders()]);
    }
  }

  /** Writes the headers, a flat list of names and values. */
  protected writeHead(status: number, headers: string[]): void {
    this.response.writeHead(status, headers);
  }

  async write(piece: Uint8Array): Promise<void> {
    await writePiece(this.response, piece);
  }

  finish(): void {
    this.response.end();
  }

  get headersSent(): boolean {
    return this.response.headersSent;
  }

  get isClosed(): boolean {
    return this.response.closed;
  }

  abort(): void {
    this.request.socket.destroy();
  }

  /** Returns `Connection: close` if a long body is still unread. Node.js discards the rest of a short one. */
  private closingHeaders(): readonly string[] {
    const { complete, headers } = this.request;
    const isLong = "transfer-encoding" in headers || this.contentLength > maxTickBytes;
    return isLong && !complete ? ["Connection", "close"] : [];
  }
}

/** Returns path and query of a URL, without the origin that a proxy may include. */
function withoutOrigin(url: string): string {
  if (url.startsWith("/")) {
    return url;
  }
  const rest = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*(.*)$/i.exec(url)?.[1] ?? url;
  return rest.startsWith("/") ? rest : `/${rest}`;
}
