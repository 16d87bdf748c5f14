/** Baseline server: node:http2 with a constant response for each path. Ignores the content of requests. */
import { createServer, type OutgoingHttpHeaders } from "node:http2";
import type { AddressInfo } from "node:net";
import "./report-usage.js";

/** Constant response. */
export interface ConstantAnswer {
  readonly headers: OutgoingHttpHeaders;
  readonly body: Uint8Array;
  /** Trailers, if any. */
  readonly trailers?: OutgoingHttpHeaders | undefined;
}

process.once("message", ({ answers }: { readonly answers: Readonly<Record<string, ConstantAnswer>> }) => {
  const server = createServer();
  server.on("stream", (stream, headers) => {
    const { headers: answered, body, trailers } = answers[headers[":path"] ?? ""]!;
    stream.resume();
    if (trailers === undefined) {
      stream.respond(answered);
    } else {
      stream.respond(answered, { waitForTrailers: true });
      stream.once("wantTrailers", () => stream.sendTrailers(trailers));
    }
    stream.end(body);
  });
  server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
});
