/**
 * Compiles a message descriptor to a decoder of the protobuf wire format, over protobuf-es's reader. It accepts what
 * protobuf-es accepts and gives messages of the same shape, except that unknown fields are passed over: a node answers
 * requests, it does not hand them on.
 */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { create, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { Failure } from "../errors.js";
import { protoNameOf, requestRules } from "./request-rules.js";

/** Bytes to message. Throws an Error when the bytes are malformed. */
export type BinaryDecoder = (bytes: Uint8Array) => object;

type Fields = Record<string, unknown>;
type ReadField = (message: Fields, reader: BinaryReader, wire: WireType, depth: number) => void;
type ReadValue = (reader: BinaryReader, depth: number) => unknown;

/** Messages nested deeper than this are refused. */
const maxDepth = 100;

interface CompiledMessage {
  readonly desc: DescMessage;
  readonly fields: Map<number, ReadField>;
}

const compiled = new WeakMap<DescMessage, CompiledMessage>();

/** The decoder of a message; compiled once for each descriptor. */
export function binaryDecoder(desc: DescMessage): BinaryDecoder {
  const message = compile(desc);
  return (bytes) => {
    const reader = new BinaryReader(bytes);
    return readFields(message, create(desc) as unknown as Fields, reader, bytes.length, 1);
  };
}

/**
 * {@link binaryDecoder} of what a caller sent.
 *
 * @throws Failure INVALID_REQUEST when the bytes are malformed, or a field holds what the contract does not allow.
 */
export function requestDecoder(desc: DescMessage): BinaryDecoder {
  const decode = binaryDecoder(desc);
  const check = requestRules(desc);
  return (bytes) => {
    let message: object;
    try {
      message = decode(bytes);
    } catch {
      throw new Failure("INVALID_REQUEST", `The request is not a valid ${desc.typeName}.`);
    }
    check(message, protoNameOf);
    return message;
  };
}

function compile(desc: DescMessage): CompiledMessage {
  let message = compiled.get(desc);
  if (message === undefined) {
    message = { desc, fields: new Map() };
    compiled.set(desc, message);
    for (const field of desc.fields) {
      message.fields.set(field.number, compileField(field));
    }
  }
  return message;
}

function readFields(
  message: CompiledMessage,
  target: Fields,
  reader: BinaryReader,
  end: number,
  depth: number,
): Fields {
  if (depth > maxDepth) {
    throw new Error(`messages are nested deeper than ${maxDepth}`);
  }
  while (reader.pos < end) {
    const [number, wire] = reader.tag();
    const read = message.fields.get(number);
    if (read === undefined) {
      reader.skip(wire, number, maxDepth - depth);
    } else {
      read(target, reader, wire, depth);
    }
  }
  return target;
}

function compileField(field: DescField): ReadField {
  const key = field.localName;
  switch (field.fieldKind) {
    case "list":
      return compileList(field, key);
    case "map":
      return compileMap(field, key);
    case "message":
      return field.oneof === undefined
        ? mergeMessage(field.message, key)
        : mergeChosen(field.message, field.oneof.localName, key);
    case "scalar":
    case "enum": {
      const read = valueReader(field);
      const oneof = field.oneof?.localName;
      return oneof === undefined
        ? (target, reader, _wire, depth) => {
            target[key] = read(reader, depth);
          }
        : (target, reader, _wire, depth) => {
            target[oneof] = { case: key, value: read(reader, depth) };
          };
    }
  }
}

/** A message field that comes twice is merged, as the format wants. */
function mergeMessage(desc: DescMessage, key: string): ReadField {
  const message = compile(desc);
  return (target, reader, _wire, depth) => {
    target[key] = readNested(message, reader, depth, target[key] as Fields | undefined);
  };
}

function mergeChosen(desc: DescMessage, oneof: string, key: string): ReadField {
  const message = compile(desc);
  return (target, reader, _wire, depth) => {
    const chosen = target[oneof] as { readonly case?: string; readonly value?: unknown };
    const before = chosen.case === key ? (chosen.value as Fields) : undefined;
    target[oneof] = { case: key, value: readNested(message, reader, depth, before) };
  };
}

function readNested(message: CompiledMessage, reader: BinaryReader, depth: number, before?: Fields): Fields {
  const sizeBytes = reader.uint32();
  return readFields(
    message,
    before ?? (create(message.desc) as unknown as Fields),
    reader,
    reader.pos + sizeBytes,
    depth + 1,
  );
}

function compileList(field: DescField & { fieldKind: "list" }, key: string): ReadField {
  const read = valueReader(field);
  const canPack =
    field.message === undefined && field.scalar !== ScalarType.STRING && field.scalar !== ScalarType.BYTES;
  return (target, reader, wire, depth) => {
    const values = target[key] as unknown[];
    if (!canPack || wire !== WireType.LengthDelimited) {
      values.push(read(reader, depth));
      return;
    }
    const end = reader.uint32() + reader.pos;
    while (reader.pos < end) {
      values.push(read(reader, depth));
    }
  };
}

function compileMap(field: DescField & { fieldKind: "map" }, key: string): ReadField {
  const readKey = scalarReader(field.mapKey, field.utf8Validation);
  const readValue = valueReader(field);
  const emptyKey = scalarReader(field.mapKey, false)(zeros(), 0);
  return (target, reader, _wire, depth) => {
    const end = reader.uint32() + reader.pos;
    let name = emptyKey;
    let value: unknown;
    while (reader.pos < end) {
      // A field that is neither key nor value is passed over the way protobuf-es does: its tag alone.
      switch (reader.tag()[0]) {
        case 1:
          name = readKey(reader, depth);
          break;
        case 2:
          value = readValue(reader, depth);
          break;
      }
    }
    // Defined rather than assigned: `__proto__` is a name like any other.
    Object.defineProperty(target[key] as object, String(name), {
      value: value ?? zeroOf(field),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  };
}

/** A reader of nothing but zeros: what it reads of any type is that type's zero. */
function zeros(): BinaryReader {
  return new BinaryReader(new Uint8Array(16));
}

function zeroOf(field: DescField & { fieldKind: "map" }): unknown {
  return field.message === undefined ? valueReader(field)(zeros(), 0) : create(field.message);
}

function valueReader(field: DescField): ReadValue {
  if (field.message !== undefined) {
    const message = compile(field.message);
    return (reader, depth) => readNested(message, reader, depth);
  }
  return scalarReader(field.scalar ?? ScalarType.INT32, field.utf8Validation);
}

function scalarReader(type: ScalarType, strictUtf8: boolean): ReadValue {
  switch (type) {
    case ScalarType.STRING:
      return (reader) => reader.string(strictUtf8);
    case ScalarType.BYTES:
      return (reader) => reader.bytes();
    case ScalarType.BOOL:
      return (reader) => reader.bool();
    case ScalarType.INT32:
      return (reader) => reader.int32();
    case ScalarType.UINT32:
      return (reader) => reader.uint32();
    case ScalarType.SINT32:
      return (reader) => reader.sint32();
    case ScalarType.INT64:
      return (reader) => reader.int64();
    case ScalarType.UINT64:
      return (reader) => reader.uint64();
    case ScalarType.SINT64:
      return (reader) => reader.sint64();
    case ScalarType.FIXED32:
      return (reader) => reader.fixed32();
    case ScalarType.SFIXED32:
      return (reader) => reader.sfixed32();
    case ScalarType.FIXED64:
      return (reader) => reader.fixed64();
    case ScalarType.SFIXED64:
      return (reader) => reader.sfixed64();
    case ScalarType.FLOAT:
      return (reader) => reader.float();
    case ScalarType.DOUBLE:
      return (reader) => reader.double();
  }
}
