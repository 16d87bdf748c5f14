/**
 * Decoding of JSON requests: standard protobuf JSON, the keyword for the latest block, and errors that name the
 * parameter. The library reads the values, except for base64: it decodes digit by digit, which takes five times as long
 * as the rest of a large body.
 */
import {
  create,
  type DescField,
  type DescMessage,
  fromJson,
  getOption,
  type JsonObject,
  type JsonValue,
  mergeFromJson,
  ScalarType,
} from "@bufbuild/protobuf";
import { latest } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { latestBlock, latestKeyword } from "../../base/latest-block.js";
import { isNestedDeeper } from "../../base/text/json-depth.js";
import { RpcError } from "../errors.js";
import { invalidValue, repeatedParameter } from "../parameters.js";
import { expectationOf, putField } from "./fields.js";
import { requestValidator } from "./request-rules.js";

const maxDepth = 128;

/**
 * Parses the JSON text of a request. Text that is nested too deeply is rejected after a scan of its brackets. Parsing a
 * megabyte of brackets would block the event loop for 0.1 s.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function parseJson(text: string): unknown {
  if (isNestedDeeper(text, maxDepth)) {
    throw new RpcError("INVALID_REQUEST", `The JSON of the request body is nested deeper than ${maxDepth} levels.`);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new RpcError("INVALID_REQUEST", "The request body is not JSON.");
  }
}

/**
 * Decodes a request message from JSON text; ignores unknown members.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function readJsonText(input: DescMessage, text: string): object {
  const json = parseJson(text) as JsonValue;
  if (!isObject(json)) {
    throw new RpcError("INVALID_REQUEST", "The request body must be a JSON object.");
  }
  return readJsonRequest(input, json);
}

/**
 * Decodes a request message from a JSON object; ignores unknown members.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function readJsonRequest(input: DescMessage, json: JsonValue): object {
  let message: object;
  try {
    message = readJson(input, json);
  } catch (error) {
    throw error instanceof RpcError
      ? error
      : new RpcError("INVALID_REQUEST", `The request is not a valid ${input.typeName}.`);
  }
  requestValidator(input)(message, (field) => namesIn(json as JsonObject, field)[0] ?? field.jsonName);
  return message;
}

/** Returns the names under which a JSON object contains a field. A null value counts as absent. */
function namesIn(json: JsonObject, { jsonName, name }: DescField): string[] {
  const names = jsonName === name ? [name] : [jsonName, name];
  return names.filter((key) => Object.hasOwn(json, key) && json[key] !== null);
}

/**
 * Decodes a message from JSON, without a check of its rules.
 *
 * @param path dotted names of the outer fields; undefined for the request.
 */
export function readJson(desc: DescMessage, json: JsonValue, path?: string): object {
  if (!isObject(json)) {
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

function readField(message: object, field: DescField, json: JsonValue, name: string): void {
  const { fieldKind, oneof } = field;
  if (fieldKind === "list") {
    if (!Array.isArray(json)) {
      throw invalidValue(name, "a list", json);
    }
    json.forEach((item) => readItem(message, field, item, name));
  } else if (fieldKind === "map") {
    if (!isObject(json)) {
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
function readItem(message: object, field: DescField, json: JsonValue, name: string, key?: string): void {
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
  if (field.scalar === ScalarType.BYTES && key === undefined) {
    const bytes = typeof json === "string" ? decodeBase64(json) : undefined;
    if (bytes === undefined) {
      throw invalidValue(name, expectationOf(field), json);
    }
    putField(message, field, bytes);
    return;
  }
  const value = getOption(field, latest) && json === latestKeyword ? `${latestBlock}` : json;
  const wrapped = key === undefined ? (field.fieldKind === "list" ? [value] : value) : { [key]: value };
  try {
    const options = { ignoreUnknownFields: field.message !== undefined };
    mergeFromJson(field.parent, message as never, { [field.jsonName]: wrapped }, options);
  } catch (error) {
    throw field.message === undefined ? invalidValue(name, expectationOf(field), json) : error;
  }
}

/** Adds an entry to a map. The library validates the key and returns its only spelling. */
function putEntry(message: object, { parent, jsonName, localName }: DescField, key: string, value: unknown): void {
  type Maps = Readonly<Record<string, object>>;
  const example = fromJson(parent, { [jsonName]: { [key]: {} } }) as unknown as Maps;
  for (const name of Object.keys(example[localName]!)) {
    (message as Maps)[localName]![name as never] = value as never;
  }
}

/** Decodes standard or URL-safe base64, with or without padding; undefined if invalid. */
function decodeBase64(text: string): Uint8Array | undefined {
  const digits = text.length - Number(text.endsWith("=")) - Number(text.endsWith("=="));
  // The runtime reads only the lower byte of other characters.
  const isAscii = Buffer.byteLength(text) === text.length;
  if (!isAscii || digits % 4 === 1 || (digits === 0 && text !== "")) {
    return undefined;
  }
  const { buffer, byteOffset, length } = Buffer.from(text, "base64");
  // The runtime skips invalid characters and stops at padding. Either results in too few bytes.
  return length === Math.floor((digits * 3) / 4) ? new Uint8Array(buffer, byteOffset, length) : undefined;
}

function isObject(json: JsonValue): json is JsonObject {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}
