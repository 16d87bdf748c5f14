/** HTTP handler of the metrics port. Serves `GET /metrics` only. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Metrics } from "./metrics.js";

export function createMetricsPage(
  metrics: Metrics,
  onError: (error: unknown) => void,
): (request: IncomingMessage, response: ServerResponse) => void {
  let reading: Promise<string> | undefined;

  /** Reads the metrics. Requests that arrive meanwhile get the same text, since a read costs milliseconds. */
  const read = (): Promise<string> =>
    (reading ??= metrics.text().finally(() => {
      reading = undefined;
    }));

  async function respond({ method, url }: IncomingMessage, response: ServerResponse): Promise<void> {
    if (url?.split("?")[0] !== "/metrics") {
      end(response, 404, "text/plain; charset=utf-8", "The metrics are at /metrics.\n");
    } else if (method !== "GET" && method !== "HEAD") {
      end(response, 405, "text/plain; charset=utf-8", "The metrics accept only GET.\n", { Allow: "GET, HEAD" });
    } else {
      end(response, 200, metrics.contentType, await read());
    }
  }

  return (request, response) => {
    request.resume();
    respond(request, response).catch((error: unknown) => {
      onError(error);
      end(response, 500, "text/plain; charset=utf-8", "Internal error\n");
    });
  };
}

function end(
  response: ServerResponse,
  status: number,
  contentType: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response
    .writeHead(status, {
      ...headers,
      "Content-Type": contentType,
      "X-Content-Type-Options": "nosniff",
      "Content-Length": Buffer.byteLength(body),
    })
    .end(body);
}
