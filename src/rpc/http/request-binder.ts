/**
 * Conversion of plain HTTP requests to request messages: path parameters, query values by the field's JSON name, or a
 * JSON body. Fields of nested messages have dotted names, such as `book.author.name`. Binders are compiled once per
 * route. Binders reject ambiguous requests instead of guessing.
 */
import {
  create,
  type DescField,
  type DescMessage,
  fromJson,
  getOption,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import { latest } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { makeImmutable } from "../../base/caches/immutable.js";
import { latestBlock, latestKeyword } from "../../base/latest-block.js";
import { RpcError } from "../errors.js";
import { enumNames, expectationOf, isLong, putField, type Range, rangeOf, readField } from "../codec/fields.js";
import { repeatedParameter, invalidValue } from "../parameters.js";
import { parseJson, readJsonRequest, readJsonText } from "../codec/json-request.js";
import { jsonNameOf, type NameOf, protoNameOf, requestValidator } from "../codec/request-rules.js";
import type { HttpRoute } from "./http-rule.js";

/**
 * Creates the request message from path parameters (in the template's order), the raw query string and the JSON body
 * text.
 */
export type RequestBinder = (parameters: readonly string[], query: string, body: string | undefined) => object;

type Parse = (text: string) => unknown;

/** Field that text can fill, at its location in the request. */
interface TextField {
  readonly isList: boolean;
  /** Parses text, and sets the field to the value, or appends the value to a list. */
  readonly put: (message: object, text: string) => void;
}

/**
 * Compiles the binder of one route.
 *
 * @param pathFields the template's field names, in order.
 * @param body target of a JSON body: the entire request (`*`) or one field; undefined without a body.
 * @throws Error at startup if the template names an unknown field, or one that text cannot fill.
 */
export function compileRequestBinder(
  input: DescMessage,
  pathFields: readonly string[],
  body: HttpRoute["body"],
): RequestBinder {
  const fromPath = pathFields.map((name) => {
    const found = findField(input, name, protoNameOf);
    if (found === undefined || found.isList) {
      throw new Error(`${input.typeName} has no field ${name} that a path could fill.`);
    }
    return found;
  });
  const bound = new Set([...pathFields, ...(body === undefined || body === "*" ? [] : [body.name])]);
  const findInQuery = body === "*" ? undefined : queryFields(input, bound);
  if (fromPath.length === 0 && findInQuery === undefined && body === undefined) {
    const empty = makeImmutable(create(input));
    return () => empty;
  }

  const read = bodyReader(input, body);
  const check = requestValidator(input);
  return (parameters, query, text) => {
    const message = read(text ?? "");
    if (query !== "" && findInQuery !== undefined) {
      bindQuery(message, query, findInQuery);
    }
    for (let i = 0; i < fromPath.length; i++) {
      fromPath[i]!.put(message, parameters[i]!);
    }
    check(message, jsonNameOf);
    return message;
  };
}

/** Returns the function that creates the message from the body, or an empty message without a body. */
function bodyReader(input: DescMessage, body: HttpRoute["body"]): (text: string) => object {
  if (body === undefined) {
    return () => create(input);
  }
  return body === "*"
    ? (text) => readJsonText(input, text)
    : (text) => readJsonRequest(input, { [body.jsonName]: parseJson(text) as JsonValue });
}

/** Limit on the depth of a field, because messages may be recursive. */
const maxDepth = 16;

/**
 * Finds a field that text can fill, by its name or by the dotted path of names to it.
 *
 * @param nameOf returns the name by which fields are matched.
 * @returns undefined if there is no such field.
 */
function findField(input: DescMessage, path: string, nameOf: NameOf): TextField | undefined {
  const names = path.split(".", maxDepth + 1);
  const outer: DescField[] = [];
  let desc: DescMessage | undefined = input;
  for (const name of names) {
    const field: DescField | undefined = desc?.fields.find((candidate) => nameOf(candidate) === name);
    if (field === undefined) {
      return undefined;
    }
    outer.push(field);
    desc = field.fieldKind === "message" ? field.message : undefined;
  }
  const jsonPath = outer.map(({ jsonName }) => jsonName).join(".");
  const field = outer.pop()!;
  if (names.length > maxDepth || !isText(field)) {
    return undefined;
  }
  const parse = textParser(field, jsonPath);
  return {
    isList: field.fieldKind === "list",
    put: (message, text) => putField(outer.reduce(openMessage, message), field, parse(text)),
  };
}

function openMessage(message: object, field: DescField): object {
  const inner = readField(message, field) ?? create(field.message!);
  putField(message, field, inner);
  return inner as object;
}

/** Returns the function that finds a field by its name in a query; undefined if the query can set no field. */
function queryFields(
  input: DescMessage,
  bound: ReadonlySet<string>,
): ((name: string) => TextField | undefined) | undefined {
  const fields = new Map<string, TextField>();
  const messageNames = new Set<string>();
  for (const { jsonName, name, fieldKind } of input.fields) {
    const field = bound.has(name) ? undefined : findField(input, jsonName, jsonNameOf);
    if (field !== undefined) {
      fields.set(jsonName, field);
    }
    if (fieldKind === "message" && !bound.has(name)) {
      messageNames.add(jsonName);
    }
  }
  const find = (name: string): TextField | undefined =>
    fields.get(name) ?? (messageNames.has(name.split(".", 1)[0]!) ? findField(input, name, jsonNameOf) : undefined);
  return fields.size === 0 && messageNames.size === 0 ? undefined : find;
}

/**
 * Binds the query. Unknown names are ignored, because probes and caches add their own. Only lists may repeat a name.
 */
function bindQuery(message: object, query: string, find: (name: string) => TextField | undefined): void {
  const seen = new Set<string>();
  for (const pair of query.split("&")) {
    const equals = pair.indexOf("=");
    const name = decodeQuery(equals < 0 ? pair : pair.slice(0, equals));
    const value = equals < 0 ? "" : decodeQuery(pair.slice(equals + 1));
    const field = find(name);
    if (field === undefined) {
      continue;
    }
    if (!field.isList && seen.has(name)) {
      throw repeatedParameter(name);
    }
    seen.add(name);
    field.put(message, value);
  }
}

function decodeQuery(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new RpcError("INVALID_REQUEST", "The query string has a malformed percent-encoding.");
  }
}

function textParser(field: DescField, name: string): Parse {
  const names = field.enum === undefined ? new Map<number, string>() : enumNames(field.enum);
  const expected = expectationOf(field, (number) => names.get(number)!);
  const read = textReader(field, names);
  return (text) => {
    const value = read(text);
    if (value === undefined) {
      throw invalidValue(name, expected, text);
    }
    return value;
  };
}

/** Returns the function that parses the value of a field; the function returns undefined for invalid text. */
function textReader(field: DescField, names: ReadonlyMap<number, string>): Parse {
  if (field.enum !== undefined) {
    const numbers = new Map([...names].filter(([number]) => number !== 0).map(([number, name]) => [name, number]));
    return (text) => numbers.get(text);
  }
  const range = rangeOf(field);
  if (range !== undefined) {
    const isBigint = isLong(field.scalar);
    const number: Parse = (text) => {
      const value = readInteger(text, range);
      return value === undefined || isBigint ? value : Number(value);
    };
    return getOption(field, latest) ? (text) => (text === latestKeyword ? latestBlock : number(text)) : number;
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return (text) => text;
    case ScalarType.BOOL:
      return (text) => booleans.get(text);
    case ScalarType.BYTES:
      return (text) => (/^[\w+/-]*={0,2}$/.test(text) ? new Uint8Array(Buffer.from(text, "base64")) : undefined);
    case undefined:
      return (text) => readWellKnown(field.message!, text);
    default:
      return (text) => (/^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined);
  }
}

/** Well-known types that are a string in JSON. */
const wellKnownTexts = new Set(["Timestamp", "Duration", "FieldMask"].map((name) => `google.protobuf.${name}`));

/** Returns true if text can fill a field, or an item of a list. */
function isText({ fieldKind, message }: DescField): boolean {
  return fieldKind !== "map" && (message === undefined || wellKnownTexts.has(message.typeName));
}

function readWellKnown(desc: DescMessage, text: string): object | undefined {
  try {
    return fromJson(desc, text);
  } catch {
    return undefined;
  }
}

/** Spellings of booleans in a query: `?verbose` means `?verbose=true`. */
const booleans: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["", true],
  ["false", false],
]);

function readInteger(text: string, { min, max }: Range): bigint | undefined {
  // Every 64-bit integer fits into twenty digits. Do not convert longer text.
  const value = /^(0|-?[1-9][0-9]{0,19})$/.test(text) ? BigInt(text) : undefined;
  return value !== undefined && value >= min && value <= max ? value : undefined;
}
