import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Connection } from "../gate.js";
import { bodiless, Exchange, type HttpResponse } from "./exchange.js";
import { maxTickBytes, writeBody } from "./pacing.js";

export class Http1Exchange extends Exchange {
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

  get hosts(): readonly string[] {
    const { rawHeaders } = this.request;
    return rawHeaders.filter((_, i) => i % 2 === 1 && isHost(rawHeaders[i - 1]!));
  }

  get requiresHost(): boolean {
    return this.request.httpVersion === "1.1";
  }

  protected sendContinue(): void {
    this.response.writeContinue();
  }

  protected get hasBody(): boolean {
    return this.announcedBytes > 0;
  }

  /** Length of the body in bytes; Infinity if the client announces a body without its length. */
  private get announcedBytes(): number {
    return "transfer-encoding" in this.request.headers ? Infinity : this.contentLength;
  }

  /** Announced length in bytes of a body that is not complete yet; 0 without such a body. */
  get expectedBody(): number {
    return this.request.complete ? 0 : this.announcedBytes;
  }

  protected get source(): IncomingMessage {
    return this.request;
  }

  send({ status, headers, body = "" }: HttpResponse): void {
    if (this.headersSent || this.response.destroyed) {
      return;
    }
    const contentLength = bodiless.has(status) ? [] : ["Content-Length", String(Buffer.byteLength(body))];
    this.writeHead(status, [...headers, ...contentLength, ...this.closingHeaders()]);
    if (body.length === 0 || this.method === "HEAD") {
      this.response.end();
    } else {
      writeBody(this.response, body);
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

  finish(): void {
    this.response.end();
  }

  get isClosed(): boolean {
    return this.response.closed;
  }

  abort(): void {
    this.request.socket.destroy();
  }

  /** Returns `Connection: close` if a long body is still unread. Node.js discards the rest of a short one. */
  private closingHeaders(): readonly string[] {
    // Without 100 the client decides whether it sends the body, so the next request cannot be found.
    return this.expectedBody > maxTickBytes || this.awaitsContinue ? ["Connection", "close"] : [];
  }
}

function isHost(name: string): boolean {
  return name.length === 4 && name.toLowerCase() === "host";
}

/** Returns path and query of a URL, without the origin that a proxy may include. */
function withoutOrigin(url: string): string {
  if (url.startsWith("/")) {
    return url;
  }
  const rest = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*(.*)$/i.exec(url)?.[1] ?? url;
  return rest.startsWith("/") ? rest : `/${rest}`;
}
