/**
 * Conversion of plain HTTP requests to request messages: path parameters, query values by the field's JSON name, or a
 * JSON body. Binders are compiled once per route. Binders reject ambiguous requests instead of guessing.
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
import { enumNames } from "../codec/enum-names.js";
import { expectationOf, type Range, rangeOf } from "../codec/expectations.js";
import { repeatedParameter, invalidValue } from "../parameters.js";
import { readJsonRequest, readJsonText } from "../codec/json-request.js";
import { parseJson } from "../codec/parse-json.js";
import { jsonNameOf, protoNameOf, requestValidator } from "../codec/request-rules.js";
import { type FieldPath, findField } from "./field-path.js";
import type { HttpRoute } from "./http-rule.js";

/**
 * Creates the request message from path parameters (in the template's order), the raw query string and the JSON body
 * text.
 */
export type RequestBinder = (parameters: readonly string[], query: string, body: string | undefined) => object;

type Parse = (text: string) => unknown;
type Message = Record<string, unknown>;

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
    if (found === undefined || found.field.fieldKind === "list" || !isText(found.field)) {
      throw new Error(`${input.typeName} has no field ${name} that a path could fill.`);
    }
    return { put: found.put, parse: textParser(found.field, found.jsonPath) };
  });
  const bound = new Set([...pathFields, ...(body === undefined || body === "*" ? [] : [body.name])]);
  const fromQuery = body === "*" ? undefined : queryFields(input, bound);
  if (fromPath.length === 0 && fromQuery?.isEmpty === true && body === undefined) {
    const empty = makeImmutable(create(input));
    return () => empty;
  }

  const read = bodyReader(input, body);
  const check = requestValidator(input);
  return (parameters, query, text) => {
    const message = read(text ?? "");
    if (query !== "" && fromQuery?.isEmpty === false) {
      bindQuery(message, query, fromQuery);
    }
    for (let i = 0; i < fromPath.length; i++) {
      const field = fromPath[i]!;
      field.put(message, field.parse(parameters[i]!));
    }
    check(message, jsonNameOf);
    return message;
  };
}

/** Returns the function that creates the message from the body, or an empty message without a body. */
function bodyReader(input: DescMessage, body: HttpRoute["body"]): (text: string) => Message {
  if (body === undefined) {
    return () => create(input) as unknown as Message;
  }
  return body === "*"
    ? (text) => readJsonText(input, text) as Message
    : (text) => readJsonRequest(input, { [body.jsonName]: parseJson(text) as JsonValue }) as Message;
}

interface QueryField extends Pick<FieldPath, "put"> {
  readonly isList: boolean;
  readonly parse: Parse;
}

interface QueryFields {
  readonly isEmpty: boolean;
  /** Finds a field by its name in a query; undefined if unknown. */
  find(name: string): QueryField | undefined;
}

function queryFields(input: DescMessage, bound: ReadonlySet<string>): QueryFields {
  const fields = new Map<string, QueryField>();
  const compile = (path: string): QueryField | undefined => {
    const found = findField(input, path, jsonNameOf);
    return found === undefined || !isText(found.field)
      ? undefined
      : { put: found.put, isList: found.field.fieldKind === "list", parse: textParser(found.field, found.jsonPath) };
  };
  const unbound = input.fields.filter(({ name }) => !bound.has(name));
  for (const { jsonName } of unbound) {
    const field = compile(jsonName);
    if (field !== undefined) {
      fields.set(jsonName, field);
    }
  }
  const messageNames = new Set(
    unbound.filter(({ fieldKind }) => fieldKind === "message").map(({ jsonName }) => jsonName),
  );
  return {
    isEmpty: fields.size === 0 && messageNames.size === 0,
    find: (name) => fields.get(name) ?? (messageNames.has(name.split(".", 1)[0]!) ? compile(name) : undefined),
  };
}

/**
 * Binds the query. Unknown names are ignored, because probes and caches add their own. Only lists may repeat a name.
 */
function bindQuery(message: Message, query: string, fields: QueryFields): void {
  const seen = new Set<string>();
  for (const pair of query.split("&")) {
    const equals = pair.indexOf("=");
    const name = decodeQuery(equals < 0 ? pair : pair.slice(0, equals));
    const value = equals < 0 ? "" : decodeQuery(pair.slice(equals + 1));
    const field = fields.find(name);
    if (field === undefined) {
      continue;
    }
    if (!field.isList && seen.has(name)) {
      throw repeatedParameter(name);
    }
    seen.add(name);
    field.put(message, field.parse(value));
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
    const isLarge = isLong(field);
    const number: Parse = (text) => {
      const value = readInteger(text, range);
      return value === undefined || isLarge ? value : Number(value);
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

/** Returns true if a number has 64 bits, and is therefore a bigint in messages. */
function isLong({ scalar }: DescField): boolean {
  return [ScalarType.INT64, ScalarType.SINT64, ScalarType.SFIXED64, ScalarType.UINT64, ScalarType.FIXED64].includes(
    scalar!,
  );
}

function readInteger(text: string, { min, max }: Range): bigint | undefined {
  // Every 64-bit integer fits into twenty digits. Do not convert longer text.
  const value = /^(0|-?[1-9][0-9]{0,19})$/.test(text) ? BigInt(text) : undefined;
  return value !== undefined && value >= min && value <= max ? value : undefined;
}
