/**
 * Compiles a message descriptor to an encoder of the plain JSON interface. Its rules are those of docs/json-profile.md:
 * zeros are written, unset is null, 64-bit integers are numbers, enumerations are lower-case words. It takes literals
 * in which fields may be missing at any depth, or whole messages, and does no reflection per call. What is immutable
 * (src/base/caches/immutable.ts) is encoded once: the text of a whole message, or of one in a list, is kept as long as the
 * message, that of a field as long as the field has that same value.
 */
import { type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import { omit_when_unset, raw_json, unwrap } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { isImmutable } from "../../base/caches/immutable.js";
import { enumWords } from "./enum-words.js";
import { mayBeUnset } from "./presence.js";

/** Message to compact JSON text. */
export type JsonEncoder = (message: object) => string;

type Fields = Readonly<Record<string, unknown>>;
type EncodeValue = (value: never) => string;

/** A field as `,"name":value`, or nothing. */
type EncodeMember = (message: Fields) => string;

const compiled = new WeakMap<DescMessage, { encode: EncodeValue }>();

/** The encoder of a message; compiled once for each descriptor. */
export function jsonEncoder(desc: DescMessage): JsonEncoder {
  const message = messageEncoder(desc);
  const texts = new WeakMap<object, string>();
  return (value) => {
    if (!isImmutable(value)) {
      return message.encode(value as never);
    }
    let text = texts.get(value);
    if (text === undefined) {
      text = message.encode(value as never);
      texts.set(value, text);
    }
    return text;
  };
}

/** The encoder of one field's value, where that is the whole body (`response_body`). */
export function jsonFieldEncoder(field: DescField): JsonEncoder {
  const encode = fieldEncoder(field);
  return (message) => encode((message as Fields)[field.localName]) ?? "null";
}

/** Wrapped, so that a message that contains itself can refer to its own encoder before it is compiled. */
function messageEncoder(desc: DescMessage): { encode: EncodeValue } {
  let message = compiled.get(desc);
  if (message === undefined) {
    message = {
      encode: () => {
        throw new Error(`${desc.typeName} holds itself without end: a field on the way must be optional.`);
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
      // Without the comma of the first, while it is short: a cut of the whole would copy it.
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

/** Encodes a field's value; undefined when it is unset. */
function fieldEncoder(field: DescField): (value: unknown) => string | undefined {
  const encode = elementEncoder(field);
  switch (field.fieldKind) {
    case "list": {
      const empty = getOption(field, omit_when_unset) ? undefined : "[]";
      const encodeItem = field.message === undefined ? encode : rememberItems(encode);
      return rememberImmutable((values: readonly never[]) => encodeList(values, encodeItem) ?? empty, empty);
    }
    case "map": {
      const empty = getOption(field, omit_when_unset) ? undefined : "{}";
      return rememberImmutable(
        (entries: Readonly<Record<string, never>>) => encodeMap(entries, encode) ?? empty,
        empty,
      );
    }
    case "message":
      return rememberImmutable(encode, mayBeUnset(field) ? undefined : encode({} as never));
    case "scalar":
    case "enum": {
      const unset = mayBeUnset(field) ? undefined : zeroText(field, encode);
      return (value) => (value === undefined ? unset : encode(value as never));
    }
  }
}

function zeroText(field: DescField, encode: EncodeValue): string {
  if (getOption(field, raw_json)) {
    return "null";
  }
  switch (field.scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return '""';
    case ScalarType.BOOL:
      return "false";
    case undefined:
      return encode(0 as never);
    default:
      return "0";
  }
}

function rememberImmutable(
  encode: (value: never) => string | undefined,
  unset: string | undefined,
): (value: unknown) => string | undefined {
  let remembered: unknown;
  let rememberedText: string | undefined;
  return (value) => {
    if (value === undefined) {
      return unset;
    }
    if (value === remembered) {
      return rememberedText;
    }
    const text = encode(value as never);
    if (text !== undefined && isImmutable(value)) {
      remembered = value;
      rememberedText = inOnePiece(text);
    }
    return text;
  };
}

/** What is immutable stands in one list after the other, as those change: its text is kept as long as it is. */
function rememberItems(encode: EncodeValue): EncodeValue {
  const texts = new WeakMap<object, string>();
  return (item: never) => {
    let text = texts.get(item);
    if (text === undefined) {
      text = encode(item);
      if (isImmutable(item)) {
        text = inOnePiece(text);
        texts.set(item, text);
      }
    }
    return text;
  };
}

/** The same text without the tree of pieces that it was joined from, which every use would walk again. */
function inOnePiece(text: string): string {
  return Buffer.from(text, "utf8").toString("utf8");
}

function encodeList(values: readonly never[], encode: EncodeValue): string | undefined {
  let text = "";
  for (let i = 0; i < values.length; i++) {
    text += `${text === "" ? "[" : ","}${encode(values[i]!)}`;
  }
  return text === "" ? undefined : `${text}]`;
}

function encodeMap(entries: Readonly<Record<string, never>>, encode: EncodeValue): string | undefined {
  let text = "";
  for (const name of Object.keys(entries)) {
    text += `${text === "" ? "{" : ","}${encodeString(name)}:${encode(entries[name]!)}`;
  }
  return text === "" ? undefined : `${text}}`;
}

/** Encodes one element: a singular value, an item of a list, or a value of a map. */
function elementEncoder(field: DescField): EncodeValue {
  if (field.message !== undefined) {
    const message = messageEncoder(field.message);
    return (value) => message.encode(value);
  }
  if (field.enum !== undefined) {
    const words = new Map([...enumWords(field.enum)].map(([number, word]) => [number, JSON.stringify(word)]));
    return (value: number) => words.get(value) ?? String(value);
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

/** Up to this length it is cheaper to look at every character than to call JSON.stringify. */
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

/** ISO 8601 in UTC with milliseconds. */
function encodeTimestamp(timestamp: { readonly seconds?: bigint; readonly nanos?: number }): string {
  const ms = Number(timestamp.seconds ?? 0n) * 1000 + Math.floor((timestamp.nanos ?? 0) / 1e6);
  return `"${new Date(ms).toISOString()}"`;
}
