/** Baseline: node:http2 answering each path with a constant; it reads nothing of the request but that it has ended. */
import { createServer, type OutgoingHttpHeaders } from "node:http2";
import type { AddressInfo } from "node:net";
import "./report-usage.js";

/** A constant answer. */
export interface ConstantAnswer {
  readonly headers: OutgoingHttpHeaders;
  readonly body: Uint8Array;
  /** Sent behind the body, where there are any. */
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
