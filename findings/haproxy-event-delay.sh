#!/usr/bin/env bash
# haproxy adds 200 ms to every event of a stream over HTTP/1.1, unless "option http-no-delay" is set.
#
# Version: haproxy 2.6.12 (Debian).
# Behavior: haproxy assumes that more data follows a chunk soon, and lets the kernel wait up to 200 ms for it before the
#   segment is sent. An event that comes alone waits all that time. Nothing is buffered visibly, and no option of the
#   server changes it.
# Seen: of five events, sent 300 ms apart, each reaches the client more than 150 ms late by default; with
#   "option http-no-delay", none does. The fastest of three tries counts, so that a busy machine does not matter.
# Why it matters: people look for the delay of new blocks in the node, its event loop or its database.
. "$(dirname "$0")/common.sh"

debian haproxy 2.6.12
program run.mjs <<'JS'
import http from "node:http";
import { haproxy, listen, sleep } from "./common.mjs";

const node = http.createServer(async (request, response) => {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  for (let i = 0; i < 5; i++) {
    response.write(`data: ${Date.now()}\n\n`);
    await sleep(300);
  }
  response.end();
});
const upstream = await listen(node);

/** Returns the delay of each event in milliseconds. */
async function delays(port) {
  return new Promise((resolve) => {
    http.get({ port, agent: false }, (response) => {
      const found = [];
      response.on("data", (data) => {
        for (const [, sent] of String(data).matchAll(/data: (\d+)/g)) found.push(Date.now() - sent);
      });
      response.on("end", () => resolve(found));
    });
  });
}

for (const option of ["", "option http-no-delay"]) {
  const port = await haproxy(upstream, option);
  let best = await delays(port);
  for (let i = 0; i < 2; i++) {
    const next = await delays(port);
    best = best.map((delay, place) => Math.min(delay, next[place]));
  }
  const late = best.filter((delay) => delay > 150).length;
  console.log(`${option || "default"}: ${late} of ${best.length} events are more than 150 ms late`);
}
process.exit(0);
JS
shows node run.mjs <<'SEEN'
default: 5 of 5 events are more than 150 ms late
option http-no-delay: 0 of 5 events are more than 150 ms late
SEEN
