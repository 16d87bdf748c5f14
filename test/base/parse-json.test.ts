/** The JSON parser for input from outside, compared with the one of the runtime. */
import test from "ava";
import fc from "fast-check";
import { describeJsonError, JsonNumber, parseJsonText, toPlainJson } from "../../src/base/text/parse-json.js";

test("parses what JSON.parse parses", (t) => {
  const spaces = fc.constantFrom("", " ", "\n\t\r ");
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), spaces, fc.nat(4), (value, space, indent) => {
      const text = `${space}${JSON.stringify(value, null, indent)}${space}`;
      t.deepEqual(toPlainJson(parseJsonText(text)), JSON.parse(text));
    }),
  );
  for (const text of [
    '{"__proto__":{"a":1},"constructor":2}',
    '"\\u0041\\ud800\\n\\/"',
    '"é\u2028😀"',
    '"123456789012\\""',
  ]) {
    t.deepEqual(toPlainJson(parseJsonText(text)), JSON.parse(text), text);
  }
});

test("rejects what JSON.parse rejects", (t) => {
  const valid = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify(value));
  const cut = fc.tuple(valid, fc.nat(), fc.string({ maxLength: 2 })).map(([text, at, extra]) => {
    const position = at % (text.length + 1);
    return text.slice(0, position) + extra + text.slice(position + 1);
  });
  const outcome = (parse: () => unknown): unknown => {
    try {
      return { value: parse() };
    } catch {
      return "error";
    }
  };
  const hasTwo = (text: string): boolean => {
    try {
      parseJsonText(text);
      return false;
    } catch (error) {
      return (error as Error).message.startsWith("has two members");
    }
  };
  fc.assert(
    fc.property(cut, (text) => {
      if (!hasTwo(text)) {
        t.deepEqual(
          outcome(() => toPlainJson(parseJsonText(text))),
          outcome(() => JSON.parse(text)),
          text,
        );
      }
    }),
    { numRuns: 2_000 },
  );
  const invalid = [
    "",
    " ",
    "01",
    "1.",
    ".5",
    "+1",
    "-",
    "1e",
    "NaN",
    "tru",
    "nul",
    "'a'",
    '"a',
    '"\\x"',
    '"a\nb"',
    "\ufeff1",
  ];
  for (const text of [...invalid, "[1,]", "[,1]", '{"a":1,}', "{a:1}", '{"a"}', "[1", "1 2", "\u00a01", '"\\ud83"']) {
    t.throws(() => parseJsonText(text), { message: /^is not JSON at line [12], column [1-9]: / }, text);
  }
});

test("keeps the text of numbers that a JavaScript number would change", (t) => {
  for (const text of ["9007199254740993", "18446744073709551615", "1e400", "-0", "1.0", "1E2", "0.10", "1e-400"]) {
    t.deepEqual(parseJsonText(text), new JsonNumber(text));
  }
  for (const number of [0, -1, 1.5, 2 ** 53, 1e21, 1e-7]) {
    t.is(parseJsonText(String(number)), number);
  }
});

test("rejects two members of one name, however they are written and wherever they are", (t) => {
  for (const text of [
    '{"q":1,"q":1}',
    '{"q":1,"\\u0071":2}',
    '[{"a":{"q":1,"p":2,"q":3}}]',
    '{"__proto__":1,"__proto__":2}',
    '{"":1,"":1}',
  ]) {
    t.throws(
      () => parseJsonText(text),
      { message: /^has two members with the name ".*" in one object, at line 1, column \d+$/ },
      text,
    );
  }
  t.notThrows(() => parseJsonText('[{"q":1},{"q":{"q":1}}]'));
});

test("names the line, the column and the character of the first mistake", (t) => {
  for (const [text, message] of [
    ["", "is not JSON at line 1, column 1: the text ends"],
    ["{", "is not JSON at line 1, column 2: the text ends"],
    ['{"a": 1,\n "b": }', 'is not JSON at line 2, column 7: unexpected "}"'],
    ['{"a": 1\r\n "b": 2}', 'is not JSON at line 2, column 2: unexpected "\\""'],
    ["[1, 2,]", 'is not JSON at line 1, column 7: unexpected "]"; remove the comma before it'],
    ['{"a": 1,\n}', 'is not JSON at line 2, column 1: unexpected "}"; remove the comma before it'],
    ["[tru]", 'is not JSON at line 1, column 2: unexpected "t"'],
    ['["é𝄞", x]', 'is not JSON at line 1, column 8: unexpected "x"'],
    ['["𝄞",\u202e]', 'is not JSON at line 1, column 6: unexpected "\\u{202e}"'],
    ['["open', "is not JSON at line 1, column 7: the text ends"],
    ['["ab\\q"]', 'is not JSON at line 1, column 5: unexpected "\\\\"'],
    ['["a\\u12"]', 'is not JSON at line 1, column 4: unexpected "\\\\"'],
    ['["a long text with a\nbreak"]', 'is not JSON at line 1, column 21: unexpected "\\n"'],
    ["1 2", 'is not JSON at line 1, column 3: unexpected "2"'],
    ['{\n"q": 1,\n"q": 2}', 'has two members with the name "q" in one object, at line 3, column 1'],
  ] as const) {
    t.throws(() => parseJsonText(text), { message }, text);
    t.is(describeJsonError(text), message);
  }
});

test("rejects text that is nested deeper than the limit", (t) => {
  const nested = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;
  t.notThrows(() => parseJsonText(nested(128)));
  t.throws(() => parseJsonText(nested(129)), { message: "is nested deeper than 128 levels, at line 1, column 129" });
  t.throws(() => parseJsonText("[".repeat(1_000_000)), { message: /^is nested deeper/ });
  t.throws(() => parseJsonText('{"a":'.repeat(3), 2), {
    message: "is nested deeper than 2 levels, at line 1, column 11",
  });
  t.is(parseJsonText(`"${"[".repeat(200)}"`), "[".repeat(200));
});
