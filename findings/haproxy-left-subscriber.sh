#!/usr/bin/env bash
# haproxy keeps the stream of a subscriber that has left, as long as the stream is quiet.
#
# Version: haproxy 2.6.12 (Debian), nginx 1.22.1 (Debian) for comparison.
# Behavior: over HTTP/1.1, haproxy takes the end of the client's connection for "sends no more", and goes on with the
#   response. It finds out only when it writes: the first write succeeds, so the second event after the departure ends it.
#   "option abortonclose" makes haproxy close the upstream connection at once.
# Seen: the client leaves after the first event. The node sees the end within 2 s behind nginx and with abortonclose, and
#   does not by default.
# Why it matters: subscribers of rare events pile up on the node until "timeout server": each holds a stream slot and memory.
#   Clients that reconnect can reach a limit of streams that they hold no more. Send heartbeats, or set abortonclose.
. "$(dirname "$0")/common.sh"

debian haproxy 2.6.12
debian nginx 1.22.1
program run.mjs <<'JS'
import { once } from "node:events";
import http from "node:http";
import { haproxy, listen, nginx, sleep } from "./common.mjs";

let closed;
const node = http.createServer((request, response) => {
  closed = once(response, "close").then(() => "the node sees it");
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  response.write("data: 1\n\n");
});
const upstream = await listen(node);

async function leave(port) {
  const request = http.get({ host: "127.0.0.1", port, agent: false });
  request.on("error", () => {});
  const [response] = await once(request, "response");
  response.on("error", () => {});
  await once(response, "data");
  request.destroy();
  return Promise.race([closed, sleep(2000, "the node does not see it in 2 s")]);
}

console.log("nginx:", await leave(await nginx(`proxy_pass http://127.0.0.1:${upstream}; proxy_buffering off;`)));
console.log("haproxy, default:", await leave(await haproxy(upstream)));
console.log("haproxy, abortonclose:", await leave(await haproxy(upstream, "option abortonclose")));
process.exit(0);
JS
shows node run.mjs <<'SEEN'
nginx: the node sees it
haproxy, default: the node does not see it in 2 s
haproxy, abortonclose: the node sees it
SEEN
