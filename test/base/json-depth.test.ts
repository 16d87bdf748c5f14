import test from "ava";
import fc from "fast-check";
import { isNestedDeeper } from "../../src/base/text/json-depth.js";

function depthOf(value: unknown): number {
  return typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;
}

test("the depth of JSON ignores brackets in strings", (t) => {
  fc.assert(
    fc.property(
      fc.jsonValue({ maxDepth: 6, stringUnit: fc.constantFrom('"', "\\", "[", "{", "]", "}", "a") }),
      (value) => {
        const [text, depth] = [JSON.stringify(value), depthOf(value)];
        t.false(isNestedDeeper(text, depth), text);
        t.true(depth === 0 || isNestedDeeper(text, depth - 1), text);
      },
    ),
  );
});

test("invalid JSON terminates as well", (t) => {
  for (const text of ['"', '"\\', '"\\"', "\\", '\\"[', '["[[[', "]]]]", '"a" "b']) {
    t.false(isNestedDeeper(text, 5), text);
  }
  t.true(isNestedDeeper("[".repeat(1_000_000), 128));
  t.false(isNestedDeeper(`"${"\\".repeat(1_000_001)}`, 1));
});
