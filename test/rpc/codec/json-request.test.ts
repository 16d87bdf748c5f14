/** JSON requests: unknown enum names are rejected at any depth. */
import type { JsonValue } from "@bufbuild/protobuf";
import test from "ava";
import { EveryTypeSchema } from "../../../gen/gatehouse/testing/v1/every_type_pb.js";
import { readJsonRequest } from "../../../src/rpc/codec/json-request.js";

const right = "COLOR_RED";
const wrong = "COLOR_PURPLE";

const places: Readonly<Record<string, (word: string) => JsonValue>> = {
  aColor: (word) => ({ aColor: word }),
  colors: (word) => ({ colors: [right, word] }),
  colorsByBool: (word) => ({ colorsByBool: { true: right, false: word } }),
  colors_by_bool: (word) => ({ colors_by_bool: { true: word } }),
  "child.maybeColor": (word) => ({ child: { maybeColor: word } }),
  "children.child.aColor": (word) => ({ children: [{ child: { aColor: right } }, { child: { aColor: word } }] }),
  "childrenByString.colors": (word) => ({ childrenByString: { a: { colors: [word] } } }),
  "chosenChild.chosenColor": (word) => ({ chosenChild: { chosenColor: word } }),
};

for (const [name, json] of Object.entries(places)) {
  test(`${name}: rejects an unknown enum name, and quotes it`, (t) => {
    t.notThrows(() => readJsonRequest(EveryTypeSchema, json(right)));
    const { message } = t.throws(() => readJsonRequest(EveryTypeSchema, json(wrong)), { name: "Failure" });
    t.true(message.startsWith(`${name} must be one of COLOR_RED, `), message);
  });
}

test("does not treat null, numbers, timestamps and unknown fields as enum names", (t) => {
  const json = { child: null, aColor: 2, colorsByBool: { true: -3 }, aTimestamp: "2026-01-01T00:00:00Z", no: ["x"] };
  t.like(readJsonRequest(EveryTypeSchema, json), { aColor: 2, colorsByBool: { true: -3 } });
});
