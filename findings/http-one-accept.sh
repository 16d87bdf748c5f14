#!/usr/bin/env bash
# A server of Node.js accepts one waiting connection in an iteration of its event loop, whatever the iteration takes.
#
# Version: Node.js 20.20.2, 22.23.3, 24.21.0 and 26.10.0.
# Behavior: the listening socket is read once in each iteration, and gives one connection. Data is different: an iteration reads
#   every connection that has some.
# Seen: 100 connections wait, and take 100 iterations. With 5 ms of other work in each iteration, the last one is accepted after
#   more than half a second.
# Why it matters: a probe or client that opens a connection for each request waits behind a burst of others by the length of
#   an iteration for each. An event-loop lag of 5 ms, which looks harmless, is 200 new connections a second at most.
. "$(dirname "$0")/common.sh"

program run.mjs <<'JS'
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import net from "node:net";

const count = 100;
for (const workMs of [0, 5]) {
  let [accepted, most, inThis, iterations] = [0, 0, 0, 0];
  const server = net.createServer((socket) => {
    socket.on("error", () => undefined);
    accepted++;
    inThis++;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // While this process waits, the other one connects.
  const script = `
    let open = 0;
    for (let i = 0; i < ${count}; i++) {
      require("node:net").connect(${server.address().port}, "127.0.0.1", () => ++open === ${count} && process.exit(0));
    }`;
  spawnSync(process.execPath, ["-e", script]);
  const startMs = performance.now();
  while (accepted < count) {
    inThis = 0;
    await new Promise((resolve) => setImmediate(resolve));
    iterations += inThis > 0 ? 1 : 0;
    most = Math.max(most, inThis);
    const sinceMs = performance.now();
    while (performance.now() - sinceMs < workMs);
  }
  const isLong = performance.now() - startMs >= (count - 1) * workMs;
  console.log(`${workMs} ms of work: ${accepted} in ${iterations} iterations, at most ${most} in one; as long as the work of all: ${isLong}`);
  server.close();
}
process.exit(0);
JS
shows node run.mjs <<'SEEN'
0 ms of work: 100 in 100 iterations, at most 1 in one; as long as the work of all: true
5 ms of work: 100 in 100 iterations, at most 1 in one; as long as the work of all: true
SEEN
