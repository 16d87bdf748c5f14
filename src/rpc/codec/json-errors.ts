/** Error messages for request JSON that the library failed to read. */
import { type DescField, type DescMessage, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import type { RpcError } from "../errors.js";
import { expectationOf, rangeOf } from "./expectations.js";
import { repeatedParameter, invalidValue } from "../parameters.js";
import { decodeBase64 } from "./read-json.js";

/** Returns the error for the first invalid value; undefined if every value is valid. */
export function findInvalidValue(desc: DescMessage, json: JsonValue, path = ""): RpcError | undefined {
  if (!isObject(json)) {
    return path === "" ? undefined : invalidValue(path, "an object", json);
  }
  for (const field of desc.fields) {
    const names = namesIn(json, field);
    if (names.length > 1) {
      return repeatedParameter(`${path}${names[0]}`);
    }
    const failure = names.length === 0 ? undefined : fieldError(field, json[names[0]!]!, `${path}${names[0]}`);
    if (failure !== undefined) {
      return failure;
    }
  }
  return undefined;
}

/** Returns the names under which a JSON object contains a field. A null value counts as absent. */
export function namesIn(json: Readonly<Record<string, JsonValue>>, { jsonName, name }: DescField): string[] {
  return [...new Set([jsonName, name])].filter((key) => Object.hasOwn(json, key) && json[key] !== null);
}

/**
 * Returns the error for the first unknown enum value, at any depth; undefined if all are known. The library silently
 * ignores unknown values.
 */
export function findUnknownEnumName(desc: DescMessage, json: JsonValue, path = ""): RpcError | undefined {
  if (!isObject(json)) {
    return undefined;
  }
  for (const field of enumFieldsOf(desc)) {
    for (const name of namesIn(json, field)) {
      const failure = firstError(valuesOf(field, json[name]!), (value) =>
        field.message === undefined
          ? unknownEnumName(field, value, `${path}${name}`)
          : findUnknownEnumName(field.message, value, `${path}${name}.`),
      );
      if (failure !== undefined) {
        return failure;
      }
    }
  }
  return undefined;
}

function unknownEnumName(field: DescField, value: JsonValue, name: string): RpcError | undefined {
  const isUnknown = typeof value === "string" && field.enum!.values.every((enumValue) => enumValue.name !== value);
  return isUnknown ? invalidValue(name, expected(field), value) : undefined;
}

const enumFields = new WeakMap<DescMessage, readonly DescField[]>();

/** Returns the fields of a message that are enums, or messages that contain enums. */
function enumFieldsOf(desc: DescMessage): readonly DescField[] {
  let fields = enumFields.get(desc);
  if (fields === undefined) {
    fields = desc.fields.filter((field) => containsEnum(field, new Set()));
    enumFields.set(desc, fields);
  }
  return fields;
}

function containsEnum({ enum: enumDesc, message }: DescField, seen: Set<DescMessage>): boolean {
  if (message === undefined || isWellKnown(message) || seen.has(message)) {
    return enumDesc !== undefined;
  }
  seen.add(message);
  return message.fields.some((field) => containsEnum(field, seen));
}

/** Returns true for a well-known type, which has a JSON format of its own. */
function isWellKnown({ typeName }: DescMessage): boolean {
  return typeName.startsWith("google.protobuf.");
}

/** Returns the items of a list, the values of a map, or the value itself. */
function valuesOf({ fieldKind }: DescField, json: JsonValue): readonly JsonValue[] {
  return fieldKind === "map" && isObject(json) ? Object.values(json) : Array.isArray(json) ? json : [json];
}

function fieldError(field: DescField, json: JsonValue, name: string): RpcError | undefined {
  if (field.fieldKind === "list") {
    return Array.isArray(json)
      ? firstError(json, (item) => itemError(field, item, name))
      : invalidValue(name, "a list", json);
  }
  if (field.fieldKind === "map") {
    return isObject(json)
      ? firstError(Object.values(json), (item) => itemError(field, item, name))
      : invalidValue(name, "an object", json);
  }
  return itemError(field, json, name);
}

function itemError(field: DescField, json: JsonValue, name: string): RpcError | undefined {
  if (field.message !== undefined) {
    return isWellKnown(field.message) ? undefined : findInvalidValue(field.message, json, `${name}.`);
  }
  return isAccepted(field, json) ? undefined : invalidValue(name, expected(field), json);
}

function expected(field: DescField): string {
  return expectationOf(field, (number) => field.enum!.value[number]!.name);
}

function firstError(
  items: readonly JsonValue[],
  find: (item: JsonValue) => RpcError | undefined,
): RpcError | undefined {
  for (const item of items) {
    const failure = find(item);
    if (failure !== undefined) {
      return failure;
    }
  }
  return undefined;
}

function isAccepted(field: DescField, json: JsonValue): boolean {
  if (field.enum !== undefined) {
    return typeof json === "string" || Number.isInteger(json);
  }
  const range = rangeOf(field);
  if (range !== undefined) {
    const number = typeof json === "string" && json.trim() !== "" ? Number(json) : json;
    return typeof number === "number" && Number.isInteger(number) && number >= range.min && number <= range.max;
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return typeof json === "string";
    case ScalarType.BOOL:
      return typeof json === "boolean";
    case ScalarType.BYTES:
      return typeof json === "string" && decodeBase64(json) !== undefined;
    default:
      return typeof json === "number" || typeof json === "string";
  }
}

function isObject(json: JsonValue): json is { [name: string]: JsonValue } {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}
