/**
 * Compiler from message descriptors to encoders of the protobuf wire format. Encoders accept complete messages, and
 * literals with missing fields at any depth. They use no reflection per call. Each field caches the bytes of its last
 * value if that is an immutable message, list or map (src/base/caches/immutable.ts).
 */
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { isImmutable } from "../../base/caches/immutable.js";
import { BinaryWriter } from "./binary-writer.js";
import { isLong } from "./fields.js";

/** Encodes a message as bytes. */
export type BinaryEncoder = (message: object) => Buffer;

type Fields = Readonly<Record<string, unknown>>;
type WriteFields = (message: Fields) => void;
type WriteValue = (value: never) => void;

const enum WireType {
  Varint = 0,
  Fixed64 = 1,
  LengthDelimited = 2,
  Fixed32 = 5,
}

const writer = new BinaryWriter();
const compiled = new WeakMap<DescMessage, { write: WriteFields }>();

/** Returns the encoder of a message, compiled once per descriptor. */
export function binaryEncoder(desc: DescMessage): BinaryEncoder {
  const fields = writeFieldsOf(desc);
  return (message) => {
    writer.reset();
    fields.write(message as Fields);
    return writer.copyFrom(0);
  };
}

/**
 * Returns the field writer of a message, in a wrapper that recursive messages can reference before the writer is
 * compiled.
 */
function writeFieldsOf(desc: DescMessage): { write: WriteFields } {
  let fields = compiled.get(desc);
  if (fields === undefined) {
    fields = { write: () => undefined };
    compiled.set(desc, fields);
    const writers = desc.members.map((member) =>
      member.kind === "oneof" ? compileOneof(member.localName, member.fields) : compileField(member),
    );
    fields.write = (message) => {
      for (const write of writers) {
        write(message);
      }
    };
  }
  return fields;
}

function compileOneof(key: string, fields: readonly DescField[]): WriteFields {
  const writers = new Map(fields.map((field) => [field.localName, elementWriter(field, field.number)]));
  return (message) => {
    const chosen = message[key] as { readonly case?: string; readonly value?: unknown } | undefined;
    if (chosen?.case !== undefined) {
      writers.get(chosen.case)?.(chosen.value as never);
    }
  };
}

function compileField(field: DescField): WriteFields {
  const key = field.localName;
  switch (field.fieldKind) {
    case "list":
      return cacheImmutable(key, compileList(field, key));
    case "map":
      return cacheImmutable(key, compileMap(field, key));
    case "message": {
      const write = elementWriter(field, field.number);
      return cacheImmutable(key, (message) => write(message[key] as never));
    }
    default: {
      const write = elementWriter(field, field.number);
      const isImplicit = field.presence === FeatureSet_FieldPresence.IMPLICIT;
      return (message) => {
        const value = message[key];
        if (value !== undefined && !(isImplicit && isZero(value))) {
          write(value as never);
        }
      };
    }
  }
}

/** Writes a field if set. Reuses the cached bytes if the value is the same immutable object as last time. */
function cacheImmutable(key: string, write: WriteFields): WriteFields {
  let cachedValue: unknown;
  let cachedBytes: Buffer = Buffer.alloc(0);
  return (message) => {
    const value = message[key];
    if (value === undefined) {
      return;
    }
    if (value === cachedValue) {
      writer.encoded(cachedBytes);
      return;
    }
    const start = writer.position();
    write(message);
    if (isImmutable(value)) {
      cachedValue = value;
      cachedBytes = writer.copyFrom(start);
    }
  };
}

/** Returns true for default values. Negative zero is not a default, because its bits are not all zero. */
function isZero(value: unknown): boolean {
  return (
    value === 0n ||
    value === "" ||
    value === false ||
    Object.is(value, 0) ||
    (value instanceof Uint8Array && value.length === 0)
  );
}

function compileList(field: DescField & { fieldKind: "list" }, key: string): WriteFields {
  if (!field.packed) {
    const write = elementWriter(field, field.number);
    return (message) => {
      for (const value of message[key] as readonly never[]) {
        write(value);
      }
    };
  }
  const tag = (field.number << 3) | WireType.LengthDelimited;
  const [, write] = scalars[field.scalar ?? ScalarType.INT32];
  return (message) => {
    const values = message[key] as readonly never[];
    if (values.length > 0) {
      writer.varint32(tag);
      const start = writer.fork();
      for (const value of values) {
        write(value);
      }
      writer.join(start);
    }
  };
}

function compileMap(field: DescField & { fieldKind: "map" }, key: string): WriteFields {
  const tag = (field.number << 3) | WireType.LengthDelimited;
  const [keyType, writeKey] = scalars[field.mapKey];
  const keyTag = (1 << 3) | keyType;
  const toKey = mapKeyParser(field.mapKey);
  const writeValue = elementWriter(field, 2);
  return (message) => {
    const entries = message[key] as Readonly<Record<string, never>>;
    for (const name of Object.keys(entries)) {
      writer.varint32(tag);
      const start = writer.fork();
      writer.varint32(keyTag);
      writeKey(toKey(name) as never);
      writeValue(entries[name]!);
      writer.join(start);
    }
  };
}

function mapKeyParser(type: ScalarType): (name: string) => unknown {
  if (type === ScalarType.STRING) {
    return (name) => name;
  }
  if (type === ScalarType.BOOL) {
    return (name) => name === "true";
  }
  return isLong(type) ? BigInt : Number;
}

/** Returns a function that writes tag and value of one element: a singular value, a list item, or a map value. */
function elementWriter(field: DescField, number: number): WriteValue {
  if (field.message !== undefined) {
    const tag = (number << 3) | WireType.LengthDelimited;
    const fields = writeFieldsOf(field.message);
    return (value: Fields) => {
      writer.varint32(tag);
      const start = writer.fork();
      fields.write(value);
      writer.join(start);
    };
  }
  const [wireType, write] = scalars[field.scalar ?? ScalarType.INT32];
  const tag = (number << 3) | wireType;
  return (value) => {
    writer.varint32(tag);
    write(value);
  };
}

/** Wire type and writer of each scalar type. */
const scalars: Readonly<Record<ScalarType, readonly [wireType: WireType, write: WriteValue]>> = {
  [ScalarType.STRING]: [WireType.LengthDelimited, (value: string) => writer.string(value)],
  [ScalarType.BYTES]: [WireType.LengthDelimited, (value: Uint8Array) => writer.bytes(value)],
  [ScalarType.BOOL]: [WireType.Varint, (value: boolean) => writer.varint32(value ? 1 : 0)],
  [ScalarType.INT32]: [WireType.Varint, (value: number) => writer.int32(value)],
  [ScalarType.UINT32]: [WireType.Varint, (value: number) => writer.varint32(value)],
  [ScalarType.SINT32]: [WireType.Varint, (value: number) => writer.varint32((value << 1) ^ (value >> 31))],
  [ScalarType.INT64]: [WireType.Varint, (value: bigint) => writer.varint64(value)],
  [ScalarType.UINT64]: [WireType.Varint, (value: bigint) => writer.varint64(value)],
  [ScalarType.SINT64]: [
    WireType.Varint,
    (value: bigint) => writer.varint64(BigInt.asUintN(64, (value << 1n) ^ (value >> 63n))),
  ],
  [ScalarType.FIXED32]: [WireType.Fixed32, (value: number) => writer.fixed32(value)],
  [ScalarType.SFIXED32]: [WireType.Fixed32, (value: number) => writer.fixed32(value)],
  [ScalarType.FLOAT]: [WireType.Fixed32, (value: number) => writer.float(value)],
  [ScalarType.FIXED64]: [WireType.Fixed64, (value: bigint) => writer.fixed64(value)],
  [ScalarType.SFIXED64]: [WireType.Fixed64, (value: bigint) => writer.fixed64(value)],
  [ScalarType.DOUBLE]: [WireType.Fixed64, (value: number) => writer.double(value)],
};
