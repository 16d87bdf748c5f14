/**
 * Decoding of standard protobuf JSON by the library, except for base64. The library decodes base64 digit by digit,
 * which takes five times as long as the rest of a large body. This module lets the runtime decode it.
 */
import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";

type Message = Record<string, unknown>;
type SetBytes = (message: Message) => void;

/** Invalid base64, for which the library throws its own error. */
const invalidBase64 = "!";

/**
 * Decodes a message; ignores unknown members.
 *
 * @throws Error of the library, with a FieldError as its cause.
 */
export function readJson(desc: DescMessage, json: JsonValue): object {
  const setters: SetBytes[] = [];
  const message = fromJson(desc, extractBytes(desc, json, setters), { ignoreUnknownFields: true });
  for (const setBytes of setters) {
    setBytes(message as unknown as Message);
  }
  return message;
}

/**
 * Returns the JSON with bytes values emptied. Adds functions to `setters` that set the bytes in the decoded message.
 */
function extractBytes(desc: DescMessage, json: JsonValue, setters: SetBytes[]): JsonValue {
  const fields = bytesFieldsOf(desc);
  if (fields.length === 0 || typeof json !== "object" || json === null || Array.isArray(json)) {
    return json;
  }
  const emptied: JsonObject = { ...json };
  for (const field of fields) {
    for (const name of new Set([field.jsonName, field.name])) {
      if (Object.hasOwn(emptied, name)) {
        emptied[name] = extractField(field, emptied[name]!, setters);
      }
    }
  }
  return emptied;
}

function extractField(field: DescField, json: JsonValue, setters: SetBytes[]): JsonValue {
  if (field.message !== undefined) {
    const inner: SetBytes[] = [];
    const emptied = extractBytes(field.message, json, inner);
    setters.push(
      ...inner.map(
        (setBytes): SetBytes =>
          (message) =>
            setBytes(readField(message, field) as Message),
      ),
    );
    return emptied;
  }
  if (typeof json !== "string") {
    return json;
  }
  const bytes = decodeBase64(json);
  if (bytes === undefined) {
    return invalidBase64;
  }
  setters.push((message) => writeField(message, field, bytes));
  return "";
}

/** Decodes standard or URL-safe base64, with or without padding; undefined if invalid. */
export function decodeBase64(text: string): Uint8Array | undefined {
  const digits = text.length - (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0);
  // The runtime reads only the lower byte of other characters.
  const isAscii = Buffer.byteLength(text) === text.length;
  if (!isAscii || digits % 4 === 1 || (digits === 0 && text !== "")) {
    return undefined;
  }
  const { buffer, byteOffset, length } = Buffer.from(text, "base64");
  // The runtime skips invalid characters and stops at padding. Either results in too few bytes.
  return length === Math.floor((digits * 3) / 4) ? new Uint8Array(buffer, byteOffset, length) : undefined;
}

function readField(message: Message, { oneof, localName }: DescField): unknown {
  return oneof === undefined ? message[localName] : (message[oneof.localName] as Message).value;
}

function writeField(message: Message, { oneof, localName }: DescField, value: unknown): void {
  if (oneof === undefined) {
    message[localName] = value;
  } else {
    (message[oneof.localName] as Message).value = value;
  }
}

const bytesFields = new WeakMap<DescMessage, readonly DescField[]>();

/** Returns the singular fields of a message that are bytes, or messages that contain bytes. */
function bytesFieldsOf(desc: DescMessage): readonly DescField[] {
  let fields = bytesFields.get(desc);
  if (fields === undefined) {
    fields = desc.fields.filter((field) => containsBytes(field, new Set([desc])));
    bytesFields.set(desc, fields);
  }
  return fields;
}

/**
 * Returns true if a field is bytes or contains bytes. Well-known types are left to the library, because they have JSON
 * formats of their own.
 */
function containsBytes({ fieldKind, scalar, message }: DescField, seen: Set<DescMessage>): boolean {
  if (fieldKind === "scalar") {
    return scalar === ScalarType.BYTES;
  }
  if (fieldKind !== "message" || message!.typeName.startsWith("google.protobuf.") || seen.has(message!)) {
    return false;
  }
  seen.add(message!);
  return message!.fields.some((field) => containsBytes(field, seen));
}
