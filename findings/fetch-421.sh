#!/usr/bin/env bash
# fetch sends a POST twice if the response is 421 Misdirected Request.
#
# Version: Node.js 20.20.2, 22.23.3, 24.21.0 and 26.10.0 (fetch is undici); node:http for comparison.
# Behavior: the fetch standard permits one new attempt on another connection after 421. Node.js makes it for every method,
#   with the body, at once, also over HTTP/1.1. The caller sees one response.
# Seen: 421 is received twice by GET and POST of fetch, once by node:http; 425 and 409 are not repeated.
# Why it matters: a proxy or node that responds 421 to a wrong host name counts each submission twice, against rate limits,
#   too. An effect that was applied before the 421 is applied twice.
. "$(dirname "$0")/common.sh"

program run.mjs <<'JS'
import http from "node:http";
import { listen } from "./common.mjs";

let received = [];
const server = http.createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  received.push(`${request.method} ${body}`.trim());
  response.writeHead(Number(request.url.slice(1)));
  response.end();
});
const url = `http://127.0.0.1:${await listen(server)}`;

for (const status of [421, 425, 409]) {
  for (const method of ["GET", "POST"]) {
    received = [];
    const { status: seen } = await fetch(`${url}/${status}`, { method, body: method === "POST" ? "transfer" : undefined });
    console.log(`fetch ${method}: response ${seen}, the server received: ${received.join(", ")}`);
  }
}
received = [];
await new Promise((resolve) => {
  const request = http.request(`${url}/421`, { method: "POST" }, (response) => response.resume().on("end", resolve));
  request.end("transfer");
});
console.log(`node:http POST: the server received: ${received.join(", ")}`);
process.exit(0);
JS
shows node run.mjs <<'SEEN'
fetch GET: response 421, the server received: GET, GET
fetch POST: response 421, the server received: POST transfer, POST transfer
fetch GET: response 425, the server received: GET
fetch POST: response 425, the server received: POST transfer
fetch GET: response 409, the server received: GET
fetch POST: response 409, the server received: POST transfer
node:http POST: the server received: POST transfer
SEEN
