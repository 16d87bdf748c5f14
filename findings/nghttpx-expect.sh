#!/usr/bin/env bash
# Behind nghttpx, the 100 that a client waits for comes only after the client has sent what it holds back.
#
# Version: nghttp2-proxy 1.52.0 (Debian), haproxy 2.6.12 (Debian) for comparison.
# Behavior: nghttpx does not answer "Expect: 100-continue" itself, and sends the head of a request to the upstream server
#   with the first part of the body only. haproxy passes the head on at once, and the server's 100 comes back.
# Seen: 100 from the server itself and through haproxy; none in 2 s through nghttpx. A client that sends the body all the
#   same gets its response.
# Why it matters: curl asks before each upload of more than 1 MB and waits 1 s, and other clients wait longer or without
#   end. Uploads through nghttpx are slow by exactly that time, while the node reports microseconds.
. "$(dirname "$0")/common.sh"

debian nghttp2-proxy 1.52.0
debian haproxy 2.6.12
program run.mjs <<'JS'
import http from "node:http";
import { freePort, haproxy, listen, sleep, start } from "./common.mjs";

const node = http.createServer((request, response) => {
  request.resume().on("end", () => response.end("stored"));
});
const upstream = await listen(node);
const nghttpx = await freePort();
await start(
  nghttpx,
  "nghttpx",
  "--conf=/dev/null",
  `--frontend=127.0.0.1,${nghttpx};no-tls`,
  `--backend=127.0.0.1,${upstream}`,
  "--workers=1",
  "--single-process",
);

async function upload(port) {
  return new Promise((resolve) => {
    const headers = { expect: "100-continue", "content-length": 4 };
    let answer;
    const request = http.request({ host: "127.0.0.1", port, method: "POST", headers, agent: false }, (response) => {
      response.resume().on("end", () => resolve(`${answer}; then ${response.statusCode}`));
    });
    const continued = new Promise((done) => request.on("continue", () => done("100 before the body")));
    request.flushHeaders();
    void Promise.race([continued, sleep(2000, "no 100 in 2 s")]).then((first) => {
      answer = first;
      request.end("data");
    });
  });
}

console.log("the node itself:", await upload(upstream));
console.log("haproxy:", await upload(await haproxy(upstream)));
console.log("nghttpx:", await upload(nghttpx));
process.exit(0);
JS
shows node run.mjs <<'SEEN'
the node itself: 100 before the body; then 200
haproxy: 100 before the body; then 200
nghttpx: no 100 in 2 s; then 200
SEEN
