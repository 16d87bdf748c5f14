/**
 * Compiler from message descriptors to encoders of the plain JSON interface, with the rules of docs/json-profile.md:
 * zeros are written, unset fields are null, 64-bit integers are numbers, enum values are lowercase names. Encoders
 * accept complete messages, and literals with missing fields at any depth, and use no reflection per call.
 *
 * Immutable values (src/base/caches/immutable.ts) are encoded once. The text of a top-level message or list item is
 * cached as long as the message exists. Other fields cache the text of their last value.
 */
import { type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import { scalarZeroValue } from "@bufbuild/protobuf/reflect";
import { omit_when_unset, raw_json, unwrap } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { isImmutable } from "../../base/caches/immutable.js";
import { enumNames, mayBeUnset } from "./fields.js";

export type JsonEncoder = (message: object) => string;

type Fields = Readonly<Record<string, unknown>>;
type EncodeValue = (value: never) => string;

/** Encodes a field as `,"name":value`, or as an empty string if it is omitted. */
type EncodeMember = (message: Fields) => string;

const compiled = new WeakMap<DescMessage, { encode: EncodeValue }>();

/** Returns the encoder of a message, compiled once per descriptor. */
export function jsonEncoder(desc: DescMessage): JsonEncoder {
  const message = messageEncoder(desc);
  return cacheTexts((value) => message.encode(value)) as JsonEncoder;
}

/** Returns the encoder of a response: of the message, or of the field that is the entire body (`response_body`). */
export function responseEncoder(output: DescMessage, responseField: DescField | undefined): JsonEncoder {
  return responseField === undefined ? jsonEncoder(output) : jsonFieldEncoder(responseField);
}

function jsonFieldEncoder(field: DescField): JsonEncoder {
  const encode = fieldEncoder(field);
  return (message) => encode((message as Fields)[field.localName]) ?? "null";
}

/** Returns the encoder of a message, in a wrapper that recursive messages can reference before it is compiled. */
function messageEncoder(desc: DescMessage): { encode: EncodeValue } {
  let message = compiled.get(desc);
  if (message === undefined) {
    message = {
      encode: () => {
        throw new Error(`${desc.typeName} contains itself without end: make one field of the cycle optional.`);
      },
    };
    compiled.set(desc, message);
    message.encode = compileMessage(desc);
  }
  return message;
}

function compileMessage(desc: DescMessage): EncodeValue {
  if (desc.typeName === "google.protobuf.Timestamp") {
    return encodeTimestamp;
  }
  if (getOption(desc, unwrap)) {
    const [only, ...more] = desc.fields;
    if (only === undefined || more.length > 0) {
      throw new Error(`${desc.typeName} has the option unwrap, so it must have exactly one field.`);
    }
    return jsonFieldEncoder(only) as EncodeValue;
  }
  const members = desc.members.map((member) =>
    member.kind === "oneof" ? compileOneof(member.localName, member.fields) : compileMember(member),
  );
  return (message: Fields) => {
    let text = "";
    for (const member of members) {
      const next = member(message);
      // Drop the leading comma while the text is short: slicing the complete text would copy it.
      text += text === "" ? next.slice(1) : next;
    }
    return `{${text}}`;
  };
}

function compileMember(field: DescField): EncodeMember {
  const encode = fieldEncoder(field);
  const key = field.localName;
  const start = memberStart(field);
  const whenUnset = getOption(field, omit_when_unset) ? "" : `${start}null`;
  return (message) => {
    const text = encode(message[key]);
    return text === undefined ? whenUnset : start + text;
  };
}

function compileOneof(key: string, fields: readonly DescField[]): EncodeMember {
  const choices = new Map(
    fields.map((field) => [field.localName, { start: memberStart(field), encode: elementEncoder(field) }]),
  );
  return (message) => {
    const chosen = message[key] as { readonly case?: string; readonly value?: unknown } | undefined;
    const choice = chosen?.case === undefined ? undefined : choices.get(chosen.case);
    return choice === undefined ? "" : choice.start + choice.encode(chosen!.value as never);
  };
}

function memberStart(field: DescField): string {
  return `,${JSON.stringify(field.jsonName)}:`;
}

/** Returns the encoder of a field's value. The encoder returns undefined if the field is unset. */
function fieldEncoder(field: DescField): (value: unknown) => string | undefined {
  const encode = elementEncoder(field);
  switch (field.fieldKind) {
    case "list":
    case "map": {
      const [encodeItems, empty] =
        field.fieldKind === "map" ? [mapEncoder(encode), "{}"] : [listEncoder(field, encode), "[]"];
      const unset = getOption(field, omit_when_unset) ? undefined : empty;
      return cacheImmutable((items: never) => encodeItems(items) ?? unset, unset);
    }
    case "message":
      return cacheImmutable(encode, mayBeUnset(field) ? undefined : encode({} as never));
    case "scalar":
    case "enum": {
      const zero = field.enum === undefined ? scalarZeroValue(field.scalar, false) : 0;
      const unset = mayBeUnset(field) ? undefined : encode(zero as never);
      return (value) => (value === undefined ? unset : encode(value as never));
    }
  }
}

/** Encodes a field. Returns the cached text if the value is the same immutable object as last time. */
function cacheImmutable(
  encode: (value: never) => string | undefined,
  unset: string | undefined,
): (value: unknown) => string | undefined {
  let cachedValue: unknown;
  let cachedText: string | undefined;
  return (value) => {
    if (value === undefined) {
      return unset;
    }
    if (value === cachedValue) {
      return cachedText;
    }
    const text = encode(value as never);
    if (text !== undefined && isImmutable(value)) {
      cachedValue = value;
      cachedText = flatten(text);
    }
    return text;
  };
}

/** Caches the texts of immutable messages. Successive versions of a list share most items. */
function cacheTexts(encode: EncodeValue): EncodeValue {
  const texts = new WeakMap<object, string>();
  return (item: never) => {
    let text = texts.get(item);
    if (text === undefined) {
      text = encode(item);
      if (isImmutable(item)) {
        text = flatten(text);
        texts.set(item, text);
      }
    }
    return text;
  };
}

/** Returns the same text as a flat string. V8 stores a concatenated string as a tree, and flattens it on each use. */
function flatten(text: string): string {
  return Buffer.from(text, "utf8").toString("utf8");
}

function listEncoder(field: DescField, encode: EncodeValue): (values: readonly never[]) => string | undefined {
  const encodeItem = field.message === undefined ? encode : cacheTexts(encode);
  return (values) => {
    let text = "";
    for (let i = 0; i < values.length; i++) {
      text += `${text === "" ? "[" : ","}${encodeItem(values[i]!)}`;
    }
    return text === "" ? undefined : `${text}]`;
  };
}

function mapEncoder(encode: EncodeValue): (entries: Readonly<Record<string, never>>) => string | undefined {
  return (entries) => {
    let text = "";
    for (const name of Object.keys(entries)) {
      text += `${text === "" ? "{" : ","}${encodeString(name)}:${encode(entries[name]!)}`;
    }
    return text === "" ? undefined : `${text}}`;
  };
}

/** Returns the encoder of one element: a singular value, a list item, or a map value. */
function elementEncoder(field: DescField): EncodeValue {
  if (field.message !== undefined) {
    const message = messageEncoder(field.message);
    return (value) => message.encode(value);
  }
  if (field.enum !== undefined) {
    const names = new Map([...enumNames(field.enum)].map(([number, name]) => [number, JSON.stringify(name)]));
    return (value: number) => names.get(value) ?? String(value);
  }
  if (getOption(field, raw_json)) {
    return (text: string) => (text === "" ? "null" : text);
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return encodeString;
    case ScalarType.BYTES:
      return (bytes: Uint8Array) =>
        `"${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64")}"`;
    case ScalarType.BOOL:
      return (value: boolean) => (value ? "true" : "false");
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      return (value: number) => (Number.isFinite(value) ? String(value) : "null");
    default:
      return (value: number | bigint) => String(value);
  }
}

/** Length up to which checking every character is cheaper than calling JSON.stringify. */
const shortString = 40;

function encodeString(text: string): string {
  if (text.length > shortString) {
    return JSON.stringify(text);
  }
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x20 || unit === 0x22 || unit === 0x5c || (unit >= 0xd800 && unit <= 0xdfff)) {
      return JSON.stringify(text);
    }
  }
  return `"${text}"`;
}

/** Encodes a timestamp in ISO 8601, in UTC with milliseconds. */
function encodeTimestamp(timestamp: { readonly seconds?: bigint; readonly nanos?: number }): string {
  const ms = Number(timestamp.seconds ?? 0n) * 1000 + Math.floor((timestamp.nanos ?? 0) / 1e6);
  return `"${new Date(ms).toISOString()}"`;
}
