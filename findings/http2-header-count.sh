#!/usr/bin/env bash
# A Node.js gRPC server limits the number of metadata entries, not their size, and says RESOURCE_EXHAUSTED.
#
# Version: @grpc/grpc-js 1.14.7 on Node.js 20.20.2 and 24.21.0.
# Behavior: node:http2 accepts 128 header pairs per request (maxHeaderListPairs), and resets a stream with more before any
#   handler runs. The client reports the reset as RESOURCE_EXHAUSTED. The size is not limited: the default of
#   maxHeaderListSize, 65,535 bytes by the documentation, is neither announced nor enforced.
# Seen: the server announces 4,294,967,295 bytes. 110 short entries and one of 70,000 bytes succeed; 140 short entries fail,
#   and the handler does not run.
# Why it matters: RESOURCE_EXHAUSTED is what a rate limit looks like. Clients with a retry policy repeat a call that can
#   never succeed, and the node logs and counts nothing.
. "$(dirname "$0")/common.sh"

packages @grpc/grpc-js@1.14.7
program run.mjs <<'JS'
import { once } from "node:events";
import http2 from "node:http2";
import grpc from "@grpc/grpc-js";
import { grpcPair } from "./common.mjs";

let calls = 0;
const { port, client } = await grpcPair(grpc, (call, callback) => callback(null, `call ${++calls}`));
const session = http2.connect(`http://127.0.0.1:${port}`);
const [settings] = await once(session, "remoteSettings");
console.log("announced limit of bytes:", settings.maxHeaderListSize);

const few = new grpc.Metadata();
for (let i = 0; i < 110; i++) few.set(`key-${i}`, "v");
const many = new grpc.Metadata();
for (let i = 0; i < 140; i++) many.set(`key-${i}`, "v");
const large = new grpc.Metadata();
large.set("key", "v".repeat(70_000));

for (const [name, metadata] of Object.entries({ "110 entries": few, "140 entries": many, "70,000 bytes": large })) {
  const result = await new Promise((resolve) => {
    client.call("hello", metadata, (error, value) => {
      resolve(error ? `${grpc.status[error.code]}: ${error.details}` : `OK, ${value}`);
    });
  });
  console.log(`${name}: ${result}`);
}
process.exit(0);
JS
shows node run.mjs <<'SEEN'
announced limit of bytes: 4294967295
110 entries: OK, call 1
140 entries: RESOURCE_EXHAUSTED: Bandwidth exhausted or memory limit exceeded
70,000 bytes: OK, call 2
SEEN
