/** JSON of requests: words that no enum has are refused wherever they are. */
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

for (const [name, given] of Object.entries(places)) {
  test(`${name}: a word that the enum does not have is refused, and named`, (t) => {
    t.notThrows(() => readJsonRequest(EveryTypeSchema, given(right)));
    const { message } = t.throws(() => readJsonRequest(EveryTypeSchema, given(wrong)), { name: "Failure" });
    t.true(message.startsWith(`${name} must be one of COLOR_RED, `), message);
  });
}

test("null, a number, a time and a field that is unknown are no words of an enum", (t) => {
  const given = { child: null, aColor: 2, colorsByBool: { true: -3 }, aTimestamp: "2026-01-01T00:00:00Z", no: ["x"] };
  t.like(readJsonRequest(EveryTypeSchema, given), { aColor: 2, colorsByBool: { true: -3 } });
});
