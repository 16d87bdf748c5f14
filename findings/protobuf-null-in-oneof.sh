#!/usr/bin/env bash
# In a oneof with a google.protobuf.Value, a JSON null replaces the other member in Python, and is an error in protobuf-es.
#
# Version: @bufbuild/protobuf 2.13.0, python3-protobuf 3.21.12 (Debian).
# Behavior: null means "not set" for all fields but Value and NullValue, where null is a value. Python does not count such a
#   null when it checks that a oneof is set once, and then lets it win. protobuf-es counts it.
# Seen: {"text":"kept","free":null} keeps no text in Python; protobuf-es reports that the oneof is set twice. With a number
#   in place of Value, both keep the text.
# Why it matters: clients that write null for each field that they do not use lose their value on one server, and are
#   rejected by the other. A Value that becomes a member of a oneof breaks them.
. "$(dirname "$0")/common.sh"

debian python3-protobuf 3.21.12
packages @bufbuild/protobuf@2.13.0
program file.json <<'JSON'
{
  "name": "finding.proto", "package": "finding", "syntax": "proto3", "dependency": ["google/protobuf/struct.proto"],
  "messageType": [{ "name": "Entry", "oneofDecl": [{ "name": "content" }], "field": [
    { "name": "text", "number": 1, "label": "LABEL_OPTIONAL", "type": "TYPE_STRING", "oneofIndex": 0, "jsonName": "text" },
    { "name": "count", "number": 2, "label": "LABEL_OPTIONAL", "type": "TYPE_INT32", "oneofIndex": 0, "jsonName": "count" },
    { "name": "free", "number": 3, "label": "LABEL_OPTIONAL", "type": "TYPE_MESSAGE",
      "typeName": ".google.protobuf.Value", "oneofIndex": 0, "jsonName": "free" }
  ] }]
}
JSON
program inputs.json <<'JSON'
["{\"text\":\"kept\",\"count\":null}", "{\"text\":\"kept\",\"free\":null}", "{\"text\":\"kept\",\"free\":1}"]
JSON
program es.mjs <<'JS'
import { readFileSync } from "node:fs";
import { createFileRegistry, fromJson, fromJsonString, toJsonString } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, file_google_protobuf_struct } from "@bufbuild/protobuf/wkt";

const read = (name) => JSON.parse(readFileSync(name, "utf8"));
const registry = createFileRegistry(fromJson(FileDescriptorProtoSchema, read("file.json")), () => file_google_protobuf_struct.proto);
const schema = registry.getMessage("finding.Entry");
for (const input of read("inputs.json")) {
  try {
    console.log("protobuf-es", input, toJsonString(schema, fromJsonString(schema, input)));
  } catch ({ message }) {
    console.log("protobuf-es", input, "error:", message.split(": ").at(-1));
  }
}
JS
program py.py <<'PY'
import json
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, struct_pb2

pool = descriptor_pool.Default()
with open("file.json") as file:
    pool.Add(json_format.ParseDict(json.load(file), descriptor_pb2.FileDescriptorProto()))
Entry = message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("finding.Entry"))
with open("inputs.json") as file:
    for line in json.load(file):
        try:
            print("python", line, json_format.MessageToJson(json_format.Parse(line, Entry()), indent=None))
        except json_format.ParseError:
            print("python", line, "error")
PY
shows sh -c 'node es.mjs && /usr/bin/python3 py.py' <<'SEEN'
protobuf-es {"text":"kept","count":null} {"text":"kept"}
protobuf-es {"text":"kept","free":null} error: oneof set multiple times by text and free
protobuf-es {"text":"kept","free":1} error: oneof set multiple times by text and free
python {"text":"kept","count":null} {"text": "kept"}
python {"text":"kept","free":null} {"free": null}
python {"text":"kept","free":1} error
SEEN
