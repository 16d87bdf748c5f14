/**
 * Decoding of JSON requests: standard protobuf JSON, the keyword for the latest block, and errors that name the
 * parameter. Numbers are read from their text, so that none changes. The library reads the other values, except for
 * base64: it decodes digit by digit, which takes five times as long as the rest of a large body.
 */
import {
  create,
  type DescField,
  type DescMessage,
  fromJson,
  getOption,
  type JsonValue,
  mergeFromJson,
  ScalarType,
} from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { latest } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { latestBlock, latestKeyword } from "../../base/latest-block.js";
import { decodeBase64 } from "../../base/text/base64.js";
import { readDecimal, readDecimalInteger, readInteger } from "../../base/text/integers.js";
import {
  isJsonObject,
  type Json,
  JsonError,
  type JsonMembers,
  JsonNumber,
  parseJsonText,
  toPlainJson,
} from "../../base/text/parse-json.js";
import { decodeUtf8 } from "../../base/text/utf8.js";
import { RpcError } from "../errors.js";
import { invalidValue, repeatedParameter } from "../parameters.js";
import { expectationOf, integerBits, putField } from "./fields.js";
import { requestValidator } from "./request-rules.js";

/** Limit on the nesting of the JSON text of a request, and on its values. A batch of 100 requests has 200 each. */
const [maxDepth, maxValues] = [128, 20_000];

/**
 * Parses the JSON text of a request.
 *
 * @throws RpcError INVALID_REQUEST if the bytes are not UTF-8, not JSON with one member of each name, or exceed a limit.
 */
export function parseJson(bytes: Uint8Array): Json {
  const text = decodeUtf8(bytes);
  if (text === undefined) {
    throw new RpcError("INVALID_REQUEST", "The request body is not UTF-8 text.");
  }
  try {
    return parseJsonText(text, maxDepth, maxValues);
  } catch (error) {
    throw error instanceof JsonError ? new RpcError("INVALID_REQUEST", `The request body ${error.message}.`) : error;
  }
}

/**
 * Decodes a request message from JSON text; ignores unknown members.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function readJsonBytes(input: DescMessage, bytes: Uint8Array): object {
  const json = parseJson(bytes);
  if (!isJsonObject(json)) {
    throw new RpcError("INVALID_REQUEST", "The request body must be a JSON object.");
  }
  return readJsonRequest(input, json);
}

/**
 * Decodes a request message from a JSON object; ignores unknown members.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function readJsonRequest(input: DescMessage, json: Json): object {
  let message: object;
  try {
    message = readJson(input, json);
  } catch (error) {
    throw error instanceof RpcError
      ? error
      : new RpcError("INVALID_REQUEST", `The request is not a valid ${input.typeName}.`);
  }
  requestValidator(input)(message, (field) => namesIn(json as JsonMembers, field)[0] ?? field.jsonName);
  return message;
}

/** Returns the names under which a JSON object contains a field. A null value counts as absent. */
function namesIn(json: JsonMembers, { jsonName, name }: DescField): string[] {
  const names = jsonName === name ? [name] : [jsonName, name];
  return names.filter((key) => Object.hasOwn(json, key) && json[key] !== null);
}

/**
 * Decodes a message from JSON, without a check of its rules.
 *
 * @param path dotted names of the outer fields; undefined for the request.
 */
export function readJson(desc: DescMessage, json: Json, path?: string): object {
  if (!isJsonObject(json)) {
    throw path === undefined ? new Error("The request is not an object.") : invalidValue(path, "an object", json);
  }
  const prefix = path === undefined ? "" : `${path}.`;
  const message = create(desc);
  for (const field of desc.fields) {
    const [name, other] = namesIn(json, field);
    if (other !== undefined) {
      throw repeatedParameter(prefix + name!);
    }
    if (name !== undefined) {
      readField(message, field, json[name]!, prefix + name);
    }
  }
  return message;
}

function readField(message: object, field: DescField, json: Json, name: string): void {
  const { fieldKind, oneof } = field;
  if (fieldKind === "list") {
    if (!Array.isArray(json)) {
      throw invalidValue(name, "a list", json);
    }
    (json as readonly Json[]).forEach((item) => readItem(message, field, item, name));
  } else if (fieldKind === "map") {
    if (!isJsonObject(json)) {
      throw invalidValue(name, "an object", json);
    }
    Object.entries(json).forEach(([key, item]) => readItem(message, field, item, name, key));
  } else {
    const chosen = oneof && (message as Readonly<Record<string, { readonly case?: string }>>)[oneof.localName]!.case;
    if (chosen !== undefined) {
      throw new Error(`${name} and ${chosen} exclude each other.`);
    }
    readItem(message, field, json, name);
  }
}

/** Reads a singular value, or adds an item to a list or map. Items are read one by one, so that errors quote them. */
function readItem(message: object, field: DescField, json: Json, name: string, key?: string): void {
  if (field.fieldKind === "map" && isIntegerType(field.mapKey) && readInteger(key!) === undefined) {
    throw invalidValue(`A name in ${name}`, "a whole number", key);
  }
  // Well-known types have JSON formats of their own.
  if (field.message !== undefined && !field.message.typeName.startsWith("google.protobuf.")) {
    const value = readJson(field.message, json, name);
    if (key === undefined) {
      putField(message, field, value);
    } else {
      putEntry(message, field, key, value);
    }
    return;
  }
  const bytes = field.scalar === ScalarType.BYTES && key === undefined ? readBytes(json) : undefined;
  if (bytes !== undefined) {
    putField(message, field, bytes);
    return;
  }
  const value = toLibraryJson(field, json);
  if (value === undefined) {
    throw invalidValue(name, expectationOf(field), json);
  }
  const wrapped = key === undefined ? (field.fieldKind === "list" ? [value] : value) : { [key]: value };
  try {
    const options = { ignoreUnknownFields: field.message !== undefined };
    mergeFromJson(field.parent, message as never, { [field.jsonName]: wrapped as JsonValue }, options);
  } catch (error) {
    throw field.message === undefined ? invalidValue(name, expectationOf(field), json) : error;
  }
}

/**
 * Returns a value in the form in which the library reads it strictly, and changes no number. Undefined for a value of
 * another type.
 */
function toLibraryJson(field: DescField, json: Json): unknown {
  const { message, scalar } = field;
  if (message !== undefined) {
    return isWrapperDesc(message) ? toLibraryJson(message.fields[0]!, json) : toPlainJson(json);
  }
  if (field.enum !== undefined) {
    return typeof json === "string" ? json : readNumber(json, readDecimal);
  }
  if (isIntegerType(scalar)) {
    const integer =
      getOption(field, latest) && json === latestKeyword ? latestBlock : readNumber(json, readDecimalInteger);
    return integer?.toString();
  }
  switch (scalar) {
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return typeof json === "number" || infinities.has(json) ? json : readNumber(json, readDecimal);
    case ScalarType.BYTES:
      return readBytes(json) && json;
    default:
      return json instanceof JsonNumber ? undefined : json;
  }
}

/** Values of floating-point fields that are text in JSON. */
const infinities: ReadonlySet<unknown> = new Set(["NaN", "Infinity", "-Infinity"]);

function isIntegerType(type: ScalarType | undefined): boolean {
  return integerBits[type!] !== undefined;
}

/** Reads a number, or text that holds one, from its text; undefined for other values. */
function readNumber<T>(json: Json, read: (text: string) => T | undefined): T | undefined {
  if (json instanceof JsonNumber) {
    return read(json.text);
  }
  return typeof json === "number" || typeof json === "string" ? read(String(json)) : undefined;
}

function readBytes(json: Json): Uint8Array | undefined {
  return typeof json === "string" ? decodeBase64(json) : undefined;
}

/** Adds an entry to a map. The library validates the key and returns its only spelling. */
function putEntry(message: object, { parent, jsonName, localName }: DescField, key: string, value: unknown): void {
  type Maps = Readonly<Record<string, object>>;
  const example = fromJson(parent, { [jsonName]: { [key]: {} } }) as unknown as Maps;
  for (const name of Object.keys(example[localName]!)) {
    (message as Maps)[localName]![name as never] = value as never;
  }
}
