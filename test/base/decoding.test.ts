/** Strict decoders of base64, whole numbers and UTF-8. */
import test from "ava";
import fc from "fast-check";
import { decodeBase64 } from "../../src/base/text/base64.js";
import { readDecimal, readDecimalInteger, readInteger } from "../../src/base/text/integers.js";
import { decodeUtf8 } from "../../src/base/text/utf8.js";

test("decodes base64 of both alphabets, with and without padding", (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 20 }), (bytes) => {
      const standard = Buffer.from(bytes).toString("base64");
      const urlSafe = Buffer.from(bytes).toString("base64url");
      const unpadded = standard.replaceAll("=", "");
      for (const text of [standard, urlSafe, unpadded, urlSafe + standard.slice(unpadded.length)]) {
        t.deepEqual(decodeBase64(text), bytes, text);
      }
    }),
  );
});

test("rejects text that is no base64", (t) => {
  const invalid = [
    "!!!",
    "A",
    "AAAAA",
    "=",
    "==",
    "AA=",
    "AAA==",
    "AAAA=",
    "A=A=",
    "AA==AA==",
    "AA A",
    "AAA\n",
    "CI EAQ==",
  ];
  // The last two have bits after the last byte.
  for (const text of [...invalid, "AAA\u0141", "ＡＡＡＡ", "AB==", "AAB="]) {
    t.is(decodeBase64(text), undefined, text);
  }
});

test("reads whole numbers in one spelling", (t) => {
  for (const text of ["0", "1", "-1", "200", "18446744073709551615", "-9223372036854775808"]) {
    t.is(readInteger(text), BigInt(text));
  }
  for (const text of [
    "",
    "-",
    "-0",
    "01",
    "+1",
    " 1",
    "1 ",
    "1\n",
    "0x1",
    "1e3",
    "1.0",
    "1_000",
    "１",
    "9".repeat(22),
  ]) {
    t.is(readInteger(text), undefined, text);
  }
});

test("reads each spelling of a whole number that ProtoJSON accepts, exactly", (t) => {
  for (const [text, value] of [
    ["0", 0n],
    ["-0", 0n],
    ["0.000", 0n],
    ["0e99999999999999999999", 0n],
    ["9007199254740993", 2n ** 53n + 1n],
    ["18446744073709551615", 2n ** 64n - 1n],
    ["1.8446744073709551615e19", 2n ** 64n - 1n],
    ["-9223372036854775808.0", -(2n ** 63n)],
    ["1e2", 100n],
    ["1E+2", 100n],
    ["12.50e1", 125n],
    ["1200e-2", 12n],
    ["0.5e1", 5n],
  ] as const) {
    t.is(readDecimalInteger(text), value, text);
  }
  for (const text of [
    "",
    "01",
    "-01",
    "+1",
    " 1",
    "1 ",
    "0x1",
    "1.",
    ".1",
    "1e",
    "0.5",
    "1e-1",
    "1e20",
    "1e999999999",
    "NaN",
  ]) {
    t.is(readDecimalInteger(text), undefined, text);
  }
  t.is(readDecimalInteger(`1${"0".repeat(1_000_000)}e-1000000`), 1n);
});

test("reads decimal numbers within the range of a JavaScript number", (t) => {
  t.is(readDecimal("1.5e3"), 1_500);
  t.is(readDecimal("1e-400"), 0);
  for (const text of ["1e309", "0x1", " 1", "", "Infinity", "1_0", "01"]) {
    t.is(readDecimal(text), undefined, text);
  }
});

test("decodes UTF-8, and nothing else", (t) => {
  t.is(decodeUtf8(Buffer.from("\ufeffé😀\0")), "\ufeffé😀\0");
  for (const bytes of [
    [0xe9],
    [0x63, 0xff],
    [0xc0, 0x80],
    [0xed, 0xa0, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
    [0xe2, 0x82],
  ]) {
    t.is(decodeUtf8(Uint8Array.from(bytes)), undefined, String(bytes));
  }
});
