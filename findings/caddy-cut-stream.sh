#!/usr/bin/env bash
# Caddy turns a chunked response that broke off into a complete one.
#
# Version: caddy 2.6.2 (Debian).
# Behavior: the upstream server closes its connection in the middle of a chunked body, which HTTP/1.1 defines as an error.
#   Caddy logs the error, and ends its own response with the last chunk. A body with content-length breaks off visibly.
# Seen: "complete: true" for the chunked response, false for the one with content-length and for both without Caddy.
# Why it matters: clients take half of a list or export for all of it, and consumers of a stream see a regular end and do not
#   resume. The protocol must say where data ends: a final message, a count, or grpc-status.
. "$(dirname "$0")/common.sh"

debian caddy 2.6.2
program run.mjs <<'JS'
import http from "node:http";
import { caddy, listen, sleep } from "./common.mjs";

const node = http.createServer(async (request, response) => {
  const length = request.url === "/length" ? { "content-length": 100 } : {};
  response.writeHead(200, { "content-type": "application/x-ndjson", ...length });
  response.write('{"block":1}\n');
  await sleep(200);
  response.destroy();
});
const upstream = await listen(node);
const proxy = await caddy(upstream);

for (const [name, port] of [["the node itself", upstream], ["Caddy", proxy]]) {
  for (const path of ["/chunked", "/length"]) {
    const seen = await new Promise((resolve) => {
      http.get({ host: "127.0.0.1", port, path, agent: false }, (response) => {
        response.resume();
        response.on("error", () => {});
        response.on("close", () => resolve(`status ${response.statusCode}, complete: ${response.complete}`));
      });
    });
    console.log(`${name}, ${path}: ${seen}`);
  }
}
process.exit(0);
JS
shows node run.mjs <<'SEEN'
the node itself, /chunked: status 200, complete: false
the node itself, /length: status 200, complete: false
Caddy, /chunked: status 200, complete: true
Caddy, /length: status 200, complete: false
SEEN
