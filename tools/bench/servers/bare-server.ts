/** Baseline servers with constant responses by path: node:http, node:http2, and grpc-js without decoding or encoding. */
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { createServer } from "node:http";
import { createServer as createHttp2Server, type OutgoingHttpHeaders } from "node:http2";
import type { AddressInfo } from "node:net";
import "./report-usage.js";

/** Constant response over HTTP/2. */
export interface ConstantAnswer {
  readonly headers: OutgoingHttpHeaders;
  readonly body: Uint8Array;
  /** Trailers, if any. */
  readonly trailers?: OutgoingHttpHeaders | undefined;
}

/** Responses of a bare server, by path. HTTP/2 servers ignore the content of requests. */
export type BareAnswers =
  | { readonly kind: "http" | "grpc"; readonly answers: Readonly<Record<string, Uint8Array>> }
  | { readonly kind: "http2"; readonly answers: Readonly<Record<string, ConstantAnswer>> };

process.once("message", (bare: BareAnswers) => {
  if (bare.kind === "grpc") {
    serveGrpc(bare.answers);
    return;
  }
  const server = bare.kind === "http2" ? http2ServerOf(bare.answers) : serverOf(bare.answers);
  server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
});

function serverOf(answers: Readonly<Record<string, Uint8Array>>) {
  return createServer((request, response) => {
    const body = answers[request.url ?? ""]!;
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": body.length });
    response.end(body);
  });
}

function http2ServerOf(answers: Readonly<Record<string, ConstantAnswer>>) {
  return createHttp2Server().on("stream", (stream, headers) => {
    const { headers: answered, body, trailers } = answers[headers[":path"] ?? ""]!;
    stream.resume();
    stream.respond(answered, { waitForTrailers: trailers !== undefined });
    stream.once("wantTrailers", () => stream.sendTrailers(trailers!));
    stream.end(body);
  });
}

function serveGrpc(answers: Readonly<Record<string, Uint8Array>>): void {
  const server = new Server();
  const asIs = (bytes: Buffer): Buffer => bytes;
  for (const [path, bytes] of Object.entries(answers)) {
    const answer = Buffer.from(bytes);
    const method = {
      ...{ path, requestStream: false, responseStream: false },
      ...{ requestSerialize: asIs, requestDeserialize: asIs, responseSerialize: asIs, responseDeserialize: asIs },
    };
    server.addService(
      { method },
      { method: (_call: unknown, done: (e: null, b: Buffer) => void) => done(null, answer) },
    );
  }
  server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
    if (error !== null) {
      throw error;
    }
    process.send?.({ port });
  });
}
