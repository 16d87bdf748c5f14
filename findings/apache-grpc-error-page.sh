#!/usr/bin/env bash
# If a node ends in the middle of a gRPC stream, Apache appends an HTML page, and clients report a huge message.
#
# Version: apache2 2.4.71 (Debian) with mod_proxy_http2, @grpc/grpc-js 1.14.7.
# Behavior: Apache passes gRPC on, trailers included. When the upstream connection breaks after the head of the response,
#   it writes its error page into the body that has begun. gRPC clients read "<!DOC" as the frame of a message: "<" is the
#   flag, and the next four letters are a length of 558,124,867 bytes.
# Seen: RESOURCE_EXHAUSTED "Received message larger than max (558124867 vs 4194304)".
# Why it matters: the code is not UNAVAILABLE, so clients do not try another node, and operators raise the message limit.
#   grpc-js reads any page with status 200 like this: 558124867 in a log means "HTML in a gRPC stream".
. "$(dirname "$0")/common.sh"

debian apache2 2.4.71
packages @grpc/grpc-js@1.14.7
program run.mjs <<'JS'
import http2 from "node:http2";
import grpc from "@grpc/grpc-js";
import { apache, listen } from "./common.mjs";

const message = Buffer.from([0, 0, 0, 0, 5, 10, 3, 111, 110, 101]);
const node = http2.createServer();
node.on("sessionError", () => {});
node.on("stream", (stream, { ":path": path }) => {
  stream.on("error", () => {});
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.write(message);
  if (path.endsWith("Whole")) stream.end();
  else setTimeout(() => stream.session.destroy(), 500);
});
const upstream = await listen(node);
const port = await apache(["http2", "proxy_http2"], `Protocols h2c http/1.1\nProxyPass / h2c://127.0.0.1:${upstream}/`);

const stream = (name) => ({
  path: `/finding.Stream/${name}`,
  requestStream: false,
  responseStream: true,
  requestSerialize: () => Buffer.from([10, 0]),
  requestDeserialize: String,
  responseSerialize: Buffer.from,
  responseDeserialize: (bytes) => `${bytes.length} bytes`,
});
const Client = grpc.makeGenericClientConstructor({ whole: stream("Whole"), cut: stream("Cut") }, "Stream");
const client = new Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
for (const name of ["whole", "cut"]) {
  const call = client[name]({});
  call.on("error", () => {});
  call.on("data", (data) => console.log(`${name}: a message of ${data}`));
  const status = await new Promise((resolve) => call.on("status", resolve));
  console.log(`${name}: ${grpc.status[status.code]} ${status.details}`.trim());
}
const header = Buffer.from("<!DOC");
console.log(`"${header}" as the head of a message: flag ${header[0]}, length ${header.readUInt32BE(1)}`);
process.exit(0);
JS
shows node run.mjs <<'SEEN'
whole: a message of 5 bytes
whole: OK
cut: a message of 5 bytes
cut: RESOURCE_EXHAUSTED Received message larger than max (558124867 vs 4194304)
"<!DOC" as the head of a message: flag 60, length 558124867
SEEN
