#!/usr/bin/env bash
# Behind a plain proxy_pass of nginx, a response that broke off in the middle looks complete.
#
# Version: nginx 1.22.1 (Debian).
# Behavior: proxy_pass speaks HTTP/1.0 to the upstream server unless proxy_http_version says otherwise. HTTP/1.0 has no
#   chunks: the end of the connection is the end of the body. nginx writes the last chunk of its own response, whatever the
#   reason of that end was. With "proxy_http_version 1.1", nginx notices, and closes the connection without the last chunk.
# Seen: the upstream server destroys its socket after one event. The client gets a complete response with 1.0, and
#   ECONNRESET or an incomplete response with 1.1.
# Why it matters: a client cannot tell a crash of the node from the regular end of a list, an export or an event stream
#   that was written without content-length. Set proxy_http_version 1.1, or end streams with a message that says so.
. "$(dirname "$0")/common.sh"

debian nginx 1.22.1
program run.mjs <<'JS'
import http from "node:http";
import { listen, nginx, sleep } from "./common.mjs";

const node = http.createServer(async (request, response) => {
  response.writeHead(200, { "content-type": "application/x-ndjson", "x-accel-buffering": "no" });
  response.write('{"block":1}\n');
  await sleep(200);
  response.destroy();
});
const upstream = await listen(node);

async function read(port) {
  return new Promise((resolve) => {
    http.get({ port, agent: false }, (response) => {
      let body = "";
      response.on("data", (data) => (body += data));
      response.on("error", () => {});
      response.on("close", () => resolve(`status ${response.statusCode}, body ${body.trim()}, complete: ${response.complete}`));
    });
  });
}

console.log("the node itself:", await read(upstream));
const plain = await nginx(`proxy_pass http://127.0.0.1:${upstream};`);
console.log("nginx, plain proxy_pass:", await read(plain));
const modern = await nginx(`proxy_pass http://127.0.0.1:${upstream}; proxy_http_version 1.1; proxy_set_header Connection "";`);
console.log("nginx, proxy_http_version 1.1:", await read(modern));
process.exit(0);
JS
shows node run.mjs <<'SEEN'
the node itself: status 200, body {"block":1}, complete: false
nginx, plain proxy_pass: status 200, body {"block":1}, complete: true
nginx, proxy_http_version 1.1: status 200, body {"block":1}, complete: false
SEEN
