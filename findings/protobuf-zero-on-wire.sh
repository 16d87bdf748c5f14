#!/usr/bin/env bash
# protobuf-es and Python turn the same JSON number into different bytes if it rounds to zero.
#
# Version: @bufbuild/protobuf 2.13.0, python3-protobuf 3.21.12 (Debian).
# Behavior: proto3 leaves a zero out of the binary form. protobuf-es decides that before it rounds a float to 32 bits, so
#   1e-50 is written as an explicit zero; it also writes -0. Python rounds first, and takes the JSON number -0 as the
#   integer 0. protobuf-es then prints 1e-50, which no float can hold, and prints -0 as 0.
# Seen: bytes and JSON of both for 1e-50 in a float, and for -0 and "-0" in a double.
# Why it matters: a hash or signature over the binary form of a message that came as JSON depends on the library that read
#   it. In protobuf-es, even a round trip through JSON changes the bytes.
. "$(dirname "$0")/common.sh"

debian python3-protobuf 3.21.12
packages @bufbuild/protobuf@2.13.0
program file.json <<'JSON'
{
  "name": "finding.proto", "package": "finding", "syntax": "proto3",
  "messageType": [{ "name": "Reading", "field": [
    { "name": "single", "number": 1, "label": "LABEL_OPTIONAL", "type": "TYPE_FLOAT", "jsonName": "single" },
    { "name": "double", "number": 2, "label": "LABEL_OPTIONAL", "type": "TYPE_DOUBLE", "jsonName": "double" }
  ] }]
}
JSON
program inputs.json <<'JSON'
["{\"single\":1e-50}", "{\"double\":-0}", "{\"double\":\"-0\"}"]
JSON
program es.mjs <<'JS'
import { readFileSync } from "node:fs";
import { createFileRegistry, fromJson, fromJsonString, toBinary, toJsonString } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

const read = (name) => JSON.parse(readFileSync(name, "utf8"));
const registry = createFileRegistry(fromJson(FileDescriptorProtoSchema, read("file.json")), () => undefined);
const schema = registry.getMessage("finding.Reading");
for (const input of read("inputs.json")) {
  const message = fromJsonString(schema, input);
  console.log("protobuf-es", input, Buffer.from(toBinary(schema, message)).toString("hex") || "empty", toJsonString(schema, message));
}
JS
program py.py <<'PY'
import json
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

pool = descriptor_pool.DescriptorPool()
with open("file.json") as file:
    pool.Add(json_format.ParseDict(json.load(file), descriptor_pb2.FileDescriptorProto()))
Reading = message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("finding.Reading"))
with open("inputs.json") as file:
    for line in json.load(file):
        message = json_format.Parse(line, Reading())
        print("python", line, message.SerializeToString().hex() or "empty", json_format.MessageToJson(message, indent=None))
PY
shows sh -c 'node es.mjs && /usr/bin/python3 py.py' <<'SEEN'
protobuf-es {"single":1e-50} 0d00000000 {"single":1e-50}
protobuf-es {"double":-0} 110000000000000080 {"double":0}
protobuf-es {"double":"-0"} 110000000000000080 {"double":0}
python {"single":1e-50} empty {}
python {"double":-0} empty {}
python {"double":"-0"} 110000000000000080 {"double": -0.0}
SEEN
