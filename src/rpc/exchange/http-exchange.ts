/** Common parts of exchanges over HTTP/1.1 and HTTP/2. */
import type { IncomingHttpHeaders } from "node:http";
import type { Connection } from "../gate.js";
import { CloseListeners } from "./close-listeners.js";

export abstract class HttpExchange {
  readonly path: string;
  readonly query: string;
  protected abstract readonly headers: IncomingHttpHeaders;
  private readonly closing: CloseListeners;

  /**
   * @param url URL without an origin.
   * @param response emitter that closes when the response is sent or the client has disconnected.
   * @param originalUrl URL before a mounting server removed its own path.
   */
  protected constructor(
    readonly requestId: string,
    readonly connection: Connection,
    url: string,
    response: ConstructorParameters<typeof CloseListeners>[0],
    readonly originalUrl = url,
  ) {
    this.closing = new CloseListeners(response);
    const mark = url.indexOf("?");
    const path = mark < 0 ? url : url.slice(0, mark);
    this.path = path.startsWith("/") ? path : `/${path}`;
    this.query = mark < 0 ? "" : url.slice(mark + 1);
  }

  header(name: string): string | undefined {
    const value = this.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  }

  /** Yields the headers without the pseudo-headers of HTTP/2. */
  *headerEntries(): Iterable<readonly [string, string]> {
    for (const name of Object.keys(this.headers)) {
      if (!name.startsWith(":")) {
        yield [name, this.header(name) ?? ""];
      }
    }
  }

  get contentLength(): number {
    return Number(this.headers["content-length"] ?? 0);
  }

  onClose(listener: () => void): void {
    this.closing.add(listener);
  }
}
