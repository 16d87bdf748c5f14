/** Random messages of any type, reproducible by a seed. */
import { create, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { reflect, type ReflectList, type ReflectMap, type ReflectMessage } from "@bufbuild/protobuf/reflect";

/** Returns a generator of numbers from 0 to 1, reproducible by its seed (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const strings = [
  "",
  "a",
  "héllo",
  "€",
  "😀",
  "\0",
  '"\\/\b\f\n\r\t\u001f',
  "__proto__",
  "constructor",
  "x".repeat(50),
  "ü".repeat(200),
];
const int32s = [0, 1, -1, 127, 128, 16383, 16384, 2 ** 31 - 1, -(2 ** 31)];
const uint32s = [0, 1, 127, 128, 300, 2 ** 31, 2 ** 32 - 1];
const int64s = [0n, 1n, -1n, 127n, 128n, 2n ** 31n, 2n ** 32n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)];
const uint64s = [0n, 1n, 2n ** 31n - 1n, 2n ** 31n, 2n ** 35n + 5n, 2n ** 63n, 2n ** 64n - 1n];
const doubles = [0, 1, -1.5, 1e21, 5e-324, 2 ** 53, 0.1, -0, Number.MAX_VALUE];
const floats = [0, 1, -1.5, 0.5, 2 ** 24, Math.fround(0.1)];

/** Returns a message in which each field is set with probability 0.5. */
export function randomMessage(desc: DescMessage, random: () => number, depth = 0): Message {
  const message = reflect(desc, create(desc));
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
  for (const field of desc.fields) {
    const isDeep = depth > 3 && field.message !== undefined;
    if (random() < (depth === 0 ? 0.6 : 0.3) && !isDeep) {
      fill(message, field);
    }
  }
  return message.message;

  function fill(target: ReflectMessage, field: DescField): void {
    switch (field.fieldKind) {
      case "list": {
        const list = target.get(field) as ReflectList;
        for (let i = Math.floor(random() * 4); i > 0; i--) {
          list.add(element(field));
        }
        break;
      }
      case "map": {
        const map = target.get(field) as ReflectMap;
        for (let i = Math.floor(random() * 4); i > 0; i--) {
          const key = scalar(field.mapKey) as string;
          // protobuf-es cannot hold this name in a map; the encoders' own tests cover it.
          if (key !== "__proto__") {
            map.set(key, element(field));
          }
        }
        break;
      }
      default:
        target.set(field, element(field));
    }
  }

  function element(field: DescField): unknown {
    if (field.message !== undefined) {
      const nested = randomMessage(field.message, random, depth + 1);
      if (field.message.typeName === "google.protobuf.Timestamp") {
        const timestamp = nested as unknown as { seconds: bigint; nanos: number };
        timestamp.seconds = BigInt(Math.floor(random() * 4e9));
        timestamp.nanos = Math.floor(random() * 1e9);
      }
      return reflect(field.message, nested);
    }
    return field.enum === undefined ? scalar(field.scalar!) : pick(field.enum.values).number;
  }

  function scalar(type: ScalarType): unknown {
    switch (type) {
      case ScalarType.STRING:
        return pick(strings);
      case ScalarType.BYTES:
        return new Uint8Array(Array.from({ length: Math.floor(random() * 200) }, () => Math.floor(random() * 256)));
      case ScalarType.BOOL:
        return random() < 0.5;
      case ScalarType.INT32:
      case ScalarType.SINT32:
      case ScalarType.SFIXED32:
        return pick(int32s);
      case ScalarType.UINT32:
      case ScalarType.FIXED32:
        return pick(uint32s);
      case ScalarType.INT64:
      case ScalarType.SINT64:
      case ScalarType.SFIXED64:
        return pick(int64s);
      case ScalarType.UINT64:
      case ScalarType.FIXED64:
        return pick(uint64s);
      case ScalarType.FLOAT:
        return pick(floats);
      case ScalarType.DOUBLE:
        return pick(doubles);
    }
  }
}
