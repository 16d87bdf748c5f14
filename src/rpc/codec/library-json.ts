/**
 * Encoding of messages as standard protobuf JSON, as the library reads it. The library itself would concatenate base64
 * digit by digit, which takes 32 bytes of memory for each.
 */
import { create, type DescMessage, type JsonObject, type JsonValue, ScalarType, toJson } from "@bufbuild/protobuf";
import { reflect, type ReflectList, type ReflectMessage } from "@bufbuild/protobuf/reflect";

export function writeLibraryJson(desc: DescMessage, message: object): string {
  return JSON.stringify(toObject(reflect(desc, message as never)));
}

/** Passes everything except bytes, and messages that may hold some, to the library. */
function toObject(message: ReflectMessage): JsonObject {
  const { desc } = message;
  const rest = reflect(desc, create(desc));
  const json: Record<string, JsonValue> = {};
  for (const field of desc.fields) {
    if (!message.isSet(field)) {
      continue;
    }
    const value: unknown = message.get(field);
    const isMessage = field.message !== undefined && !field.message.typeName.startsWith("google.protobuf.");
    if (field.fieldKind === "map" || (field.scalar !== ScalarType.BYTES && !isMessage)) {
      rest.set(field, value);
    } else if (field.fieldKind === "list") {
      json[field.jsonName] = [...(value as ReflectList)].map(toValue);
    } else {
      json[field.jsonName] = toValue(value);
    }
  }
  return { ...(toJson(desc, rest.message) as JsonObject), ...json };
}

function toValue(value: unknown): JsonValue {
  return value instanceof Uint8Array
    ? Buffer.from(value.buffer, value.byteOffset, value.length).toString("base64")
    : toObject(value as ReflectMessage);
}
