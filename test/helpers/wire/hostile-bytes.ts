/** Encoded messages that no correct encoder writes. */
import type { Chance } from "./hostile-values.js";

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
