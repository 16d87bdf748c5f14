/** Baseline server: node:http with a constant response for each path. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import "./report-usage.js";

process.once("message", ({ answers }: { readonly answers: Readonly<Record<string, Uint8Array>> }) => {
  const server = createServer((request, response) => {
    const body = answers[request.url ?? ""]!;
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": body.length });
    response.end(body);
  });
  server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
});
