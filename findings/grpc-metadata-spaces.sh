#!/usr/bin/env bash
# A metadata value that begins or ends with a space disappears without an error, together with its key.
#
# Version: @grpc/grpc-js 1.14.7 on Node.js 20.20.2 and 24.21.0.
# Behavior: gRPC permits spaces in values, and Metadata.set accepts them. HTTP/2 (RFC 9113) forbids them around a value, so
#   the library that reads frames in Node.js drops the header. Neither side reports an error.
# Seen: of five keys the server receives two; the trailers of the response lose theirs in the same way.
# Why it matters: an identity, a signature of a header, or a free text in metadata arrives as "not sent". Trim values before
#   they are set, or use a key with "-bin".
. "$(dirname "$0")/common.sh"

packages @grpc/grpc-js@1.14.7
program run.mjs <<'JS'
import grpc from "@grpc/grpc-js";
import { grpcPair } from "./common.mjs";

const { client } = await grpcPair(grpc, (call, callback) => {
  const received = Object.entries(call.metadata.getMap()).filter(([key]) => key.startsWith("x-"));
  console.log("the server received", JSON.stringify(Object.fromEntries(received)));
  const trailers = new grpc.Metadata();
  trailers.set("x-inner", "one two");
  trailers.set("x-after", "two ");
  callback(null, "done", trailers);
});
const metadata = new grpc.Metadata();
for (const [key, value] of [["x-inner", "one two"], ["x-before", " two"], ["x-after", "two "], ["x-space", " "]]) {
  metadata.set(key, value);
}
metadata.set("x-bytes-bin", Buffer.from(" two "));
console.log("the client sent", Object.keys(metadata.getMap()).join(", "));
await new Promise((resolve) => {
  client.call("hello", metadata, (error, value) => console.log("error:", error, "value:", value)).on("status", (status) => {
    console.log("the client received", JSON.stringify(status.metadata.getMap()));
    resolve();
  });
});
process.exit(0);
JS
shows node run.mjs <<'SEEN'
the client sent x-inner, x-before, x-after, x-space, x-bytes-bin
the server received {"x-inner":"one two","x-bytes-bin":{"type":"Buffer","data":[32,116,119,111,32]}}
error: null value: done
the client received {"x-inner":"one two"}
SEEN
