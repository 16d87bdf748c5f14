/** Values and encoded messages at or beyond limits, or that engines and codecs treat differently, reproducible by a seed. */
import { createRandom } from "./random-message.js";

/** A source of values, reproducible by its seed. */
export interface Chance {
  /** Returns an integer from 0 up to, but not including, the limit. */
  below(bound: number): number;
  pick<T>(values: readonly T[]): T;
  /** Returns one of these values, with a probability by its weight. */
  weigh<T>(choices: readonly (readonly [weight: number, value: T])[]): T;
  bytes(length: number): Uint8Array<ArrayBuffer>;
}

/** Creates the source. */
export function createChance(seed: number): Chance {
  const random = createRandom(seed);
  const below = (bound: number): number => Math.floor(random() * bound);
  const pick = <T>(values: readonly T[]): T => values[below(values.length)]!;
  return {
    below,
    pick,
    weigh(choices) {
      let left = below(choices.reduce((sum, [weight]) => sum + weight, 0));
      return choices.find(([weight]) => (left -= weight) < 0)![1];
    },
    bytes: (length) => new Uint8Array(Array.from({ length }, () => below(256))),
  };
}

/** Valid and invalid texts for a limit in bytes. */
export function text(chance: Chance, maxBytes: number): string {
  const around = (unit: string): string =>
    unit.repeat(Math.max(0, Math.floor(maxBytes / Buffer.byteLength(unit)) + chance.pick([-1, 0, 0, 1, 2])));
  return chance.weigh<() => string>([
    [6, () => chance.pick(["a", "b", "name", "list", "items", "n", "x y"])],
    [4, () => chance.pick(oddTexts)],
    [1, () => chance.pick(oddTexts) + chance.pick(oddTexts)],
    [1, () => around(chance.pick(["x", "é", "😀", "\u0130", "\uffff", "\\", '"']))],
    // Longer than an index entry of PostgreSQL, and incompressible.
    [
      1,
      () =>
        Buffer.from(chance.bytes(3_000))
          .toString("hex")
          .slice(0, chance.pick([255, 256, 257, 2_800, 6_000])),
    ],
  ])();
}

const oddTexts = [
  ...["", " ", "\0", "a\0b", "\n", "\t", "\u007f", "\u0085", "\u2028", "\ufeff", "\ufffd", "\ufffe", "\uffff"],
  ...["__proto__", "constructor", "toString", "hasOwnProperty", "length", "0", "-1", "1e3", "null", "true"],
  ...["a:1", ":", "::", "a/b", "a.b", "$", "$1", "?", "??", ":name", "\\?", "%", "_", "%_\\", "'", "''", '"', "`"],
  ...["'; DROP TABLE programs; --", "\\", "\\u0000", "{}", "[", "é", "e\u0301", "ﬁ", "İ", "ı", "ẞ", "ß", "Σ", "ς"],
  ...["\ud800", "\udc00", "a\ud800b", "😀", "👩‍👩‍👧", "\u202eabc", "ключ", "漢字", "\u{10ffff}", "\u{e000}"],
];

const oddNumbers = [
  ...["0", "-0", "1", "-1", "1.0", "1.10", "1e5", "1E+5", "1e-5", "1e999", "-1e999", "1e-999", "0.1", "5e-324"],
  ...["9007199254740993", "18446744073709551616", "123456789012345678901234567890.123456789", "1e400000"],
  `1${"0".repeat(400)}`,
  `0.${"0".repeat(400)}1`,
];
const oddStrings = [
  ...['""', '"a"', '"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"\\/"', '"\u2028"', '"😀"'],
  ...['"__proto__"', '"\\u005f\\u005fproto__"', '"a,]}"', '"\\\\"', '"\\""', '"é"', '"e\u0301"'],
];
const noJson = [
  ...["", " ", "{", "}", "[", "]", "nul", "NaN", "Infinity", "undefined", "'a'", "{a:1}", "[1,]", "[,]", '{"a":1,}'],
  ...['{"a" 1}', '{"a":}', "01", "1.", ".5", "+1", "0x1", "1e", '"\t"', '"\\x"', '"\\u12"', '"', "\ufeff{}", "{}\0"],
  ...["/**/1", "1 2", "{}{}", '{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '{"b":{"":1,"":2}}', "\u00a01", "[1]\u2028"],
];

/** Returns a JSON text, or sometimes an invalid one. */
export function json(chance: Chance): string {
  return chance.weigh<() => string>([
    [10, () => object(chance)],
    [6, () => value(chance, 0)],
    [2, () => chance.pick(noJson)],
    [1, () => nested(chance)],
    [1, () => " \n\t".repeat(chance.below(3)) + object(chance) + "\r\n ".repeat(chance.below(3))],
  ])();
}

/** Returns JSON nested at or just above the limit. */
function nested(chance: Chance): string {
  const depth = chance.pick([1, 62, 63, 64, 65, 66, 1_000, 20_000]);
  return chance.pick([
    "[".repeat(depth) + "]".repeat(depth),
    '{"a":'.repeat(depth) + "1" + "}".repeat(depth),
    `{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`,
  ]);
}

function value(chance: Chance, depth: number): string {
  const space = chance.weigh([
    [8, ""],
    [1, " "],
    [1, "\n\t "],
  ]);
  return (
    space +
    chance.weigh<() => string>([
      [4, () => chance.pick(oddNumbers)],
      [4, () => chance.pick(oddStrings)],
      [2, () => chance.pick(["true", "false", "null"])],
      [depth < 4 ? 3 : 0, () => array(chance, depth)],
      [depth < 4 ? 2 : 0, () => object(chance, depth)],
    ])() +
    space
  );
}

function array(chance: Chance, depth: number): string {
  return `[${Array.from({ length: chance.pick([0, 1, 2, 5]) }, () => value(chance, depth + 1)).join(",")}]`;
}

/** Returns an object, sometimes with duplicate names. */
function object(chance: Chance, depth = 0): string {
  const count = chance.pick([0, 1, 2, 3, 8]);
  const names = Array.from({ length: count }, () => JSON.stringify(text(chance, 256)));
  const unique = chance.below(8) === 0 ? names : [...new Set(names)];
  return `{${unique.map((name) => `${name}:${value(chance, depth + 1)}`).join(",")}}`;
}

/** Returns a document of about this size. */
export function sized(chance: Chance, bytes: number): string {
  const exact = bytes + chance.pick([-1, 0, 1]);
  const unit = chance.pick(["x", "é", "\\u0000"]);
  const width = Buffer.byteLength(unit);
  const count = Math.floor((exact - 8) / width);
  return `{"a":"${unit.repeat(count)}${"x".repeat(exact - 8 - count * width)}"}`;
}

const varint = (value: bigint): number[] =>
  value < 128n ? [Number(value)] : [Number(value & 127n) | 128, ...varint(value >> 7n)];

/** Encodes a field with its number, wire type and bytes. */
const field = (number: number, wire: number, ...bytes: number[]): number[] => [
  ...varint((BigInt(number) << 3n) | BigInt(wire)),
  ...bytes,
];
const lengthDelimited = (number: number, bytes: Iterable<number>): number[] => {
  const all = [...bytes];
  return field(number, 2, ...varint(BigInt(all.length)), ...all);
};

/** Additional fields of a body, which all decoders must treat alike. */
const additions: readonly ((chance: Chance) => number[])[] = [
  // Unknown fields of each wire type, and truncated ones.
  () => field(99, 0, 1),
  () => field(99, 1, 1, 2, 3, 4, 5, 6, 7, 8),
  () => field(99, 5, 1, 2, 3, 4),
  () => lengthDelimited(536_870_911, [1, 2, 3]),
  () => field(99, 3, ...field(99, 4)),
  () => [...Array.from({ length: 2_000 }, () => field(99, 3)).flat()],
  () =>
    Array.from({ length: 2_000 }, () => field(99, 3))
      .concat(Array.from({ length: 2_000 }, () => field(99, 4)))
      .flat(),
  () => field(99, 6),
  () => field(99, 7),
  () => field(0, 0, 1),
  () => field(99, 2, 0xff, 0xff, 0xff, 0xff, 0x0f),
  () => field(99, 0, ...new Array<number>(12).fill(0xff)),
  // Repeated fields, and fields of another type.
  (chance) => field(2, 0, ...varint(BigInt(chance.below(1_000)))),
  () => field(2, 0, 0x81, 0x80, 0x80, 0x00),
  () => field(2, 5, 1, 0, 0, 0),
  () => field(1, 0, 1),
  () => lengthDelimited(1, [0xff, 0xfe]),
  () => lengthDelimited(4, [0xed, 0xa0, 0x80]),
  () => lengthDelimited(10, []),
  () => lengthDelimited(11, []),
  () => lengthDelimited(10, field(99, 0, 1)),
  () => lengthDelimited(11, lengthDelimited(1, lengthDelimited(1, [0xc0, 0x80]))),
  () => lengthDelimited(10, lengthDelimited(1, lengthDelimited(1, [0x61, 0xff]))),
  () => lengthDelimited(10, lengthDelimited(1, lengthDelimited(3, lengthDelimited(1, [0x22, 0xed, 0xa0, 0x80, 0x22])))),
  // An unknown access mode.
  () => lengthDelimited(10, lengthDelimited(1, lengthDelimited(5, field(1, 0, 9)))),
  // A group with the name of a property that every object has.
  () => lengthDelimited(10, lengthDelimited(1, lengthDelimited(5, protoGroup()))),
  () => field(10, 0, 1),
];

function protoGroup(): number[] {
  const entry = [...lengthDelimited(1, Buffer.from("__proto__")), ...lengthDelimited(2, field(2, 0, 1))];
  return [...field(1, 0, 1), ...lengthDelimited(4, entry)];
}

/** Changes an encoded body in one or more ways. */
export function damage(chance: Chance, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = [...body];
  const at = (): number => chance.below(bytes.length + 1);
  const change = chance.weigh<() => number[]>([
    [6, () => [...bytes, ...chance.pick(additions)(chance)]],
    [2, () => [...chance.pick(additions)(chance), ...bytes]],
    [2, () => bytes.with(chance.below(bytes.length), chance.below(256))],
    [1, () => bytes.slice(0, at())],
    [1, () => bytes.toSpliced(at(), 0, chance.below(256))],
    [1, () => bytes.toSpliced(at(), 1 + chance.below(4))],
    [1, () => [...bytes, ...bytes]],
    [1, () => []],
    [1, () => [...chance.bytes(chance.below(60))]],
  ]);
  return new Uint8Array(change());
}
