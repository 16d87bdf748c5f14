/**
 * Makes the request message of an rpc from a plain HTTP request: path parameters and query values by the field's JSON
 * name, or a JSON body. Compiled once for each route; strict, since a guess is worse than an error.
 */
import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type JsonValue,
  ScalarType,
  create,
  getOption,
} from "@bufbuild/protobuf";
import { isFieldError } from "@bufbuild/protobuf/reflect";
import { latest } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { makeImmutable } from "../../base/immutable.js";
import { latestBlock, latestWord } from "../../base/latest-block.js";
import { Failure } from "../errors.js";
import { parseJson } from "../codec/parse-json.js";
import { enumWords } from "../codec/enum-words.js";
import { readJson } from "../codec/read-json.js";

/** Path parameters (in the template's order), raw query string and JSON body text to request message. */
export type RequestBinder = (parameters: readonly string[], query: string, body: string | undefined) => object;

type Parse = (text: string) => unknown;
type Message = Record<string, unknown>;

/**
 * Compiles the binder of one route.
 *
 * @param pathFields the template's field names, in order.
 * @param hasBody the whole request is a JSON body (`body: "*"`).
 * @throws Error at start-up when the template names a field that the message does not have or that text cannot fill.
 */
export function compileRequestBinder(
  input: DescMessage,
  pathFields: readonly string[],
  hasBody: boolean,
): RequestBinder {
  const fromPath = pathFields.map((name) => {
    const field = input.fields.find((candidate) => candidate.name === name);
    if (field === undefined || (field.fieldKind !== "scalar" && field.fieldKind !== "enum")) {
      throw new Error(`${input.typeName} has no field ${name} that a path could fill.`);
    }
    return { key: field.localName, parse: textParser(field, field.jsonName) };
  });
  const fromQuery = hasBody ? new Map<string, QueryField>() : queryFields(input, new Set(pathFields));
  if (fromPath.length === 0 && fromQuery.size === 0 && !hasBody) {
    const empty = makeImmutable(create(input));
    return () => empty;
  }

  return (parameters, query, body) => {
    const message = (hasBody ? parseBody(input, body) : create(input)) as unknown as Message;
    if (query !== "" && fromQuery.size > 0) {
      bindQuery(message, query, fromQuery);
    }
    for (let i = 0; i < fromPath.length; i++) {
      const field = fromPath[i]!;
      message[field.key] = field.parse(parameters[i]!);
    }
    return message;
  };
}

interface QueryField {
  readonly key: string;
  readonly isList: boolean;
  readonly parse: Parse;
}

function queryFields(input: DescMessage, taken: ReadonlySet<string>): Map<string, QueryField> {
  const fields = new Map<string, QueryField>();
  for (const field of input.fields) {
    const isList = field.fieldKind === "list" && field.listKind !== "message";
    if (!taken.has(field.name) && (isList || field.fieldKind === "scalar" || field.fieldKind === "enum")) {
      fields.set(field.jsonName, { key: field.localName, isList, parse: textParser(field, field.jsonName) });
    }
  }
  return fields;
}

/** Unknown names are passed over, as probes and caches add their own; a known one stands once unless it is a list. */
function bindQuery(message: Message, query: string, fields: ReadonlyMap<string, QueryField>): void {
  const seen = new Set<string>();
  for (const pair of query.split("&")) {
    const equals = pair.indexOf("=");
    const name = decodeQuery(equals < 0 ? pair : pair.slice(0, equals));
    const value = equals < 0 ? "" : decodeQuery(pair.slice(equals + 1));
    const field = fields.get(name);
    if (field === undefined) {
      continue;
    }
    if (field.isList) {
      (message[field.key] as unknown[]).push(field.parse(value));
      continue;
    }
    if (seen.has(name)) {
      throw new Failure("INVALID_REQUEST", `${name} is given more than once.`);
    }
    seen.add(name);
    message[field.key] = field.parse(value);
  }
}

function decodeQuery(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new Failure("INVALID_REQUEST", "The query string has a malformed percent-encoding.");
  }
}

function parseBody(input: DescMessage, body: string | undefined): object {
  const json = parseJson(body ?? "") as JsonValue;
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw new Failure("INVALID_REQUEST", "The request body must be a JSON object.");
  }
  return bindObject(input, json);
}

/**
 * Makes a request message of a JSON object, as standard protobuf JSON has it; unknown members are passed over.
 *
 * @throws Failure INVALID_REQUEST
 */
export function bindObject(input: DescMessage, json: JsonValue): object {
  try {
    return readJson(input, withoutWords(input, json));
  } catch (error) {
    throw new Failure("INVALID_REQUEST", bodySentence(error));
  }
}

/** The JSON with numbers in place of the word for the newest block. */
function withoutWords(input: DescMessage, json: JsonValue): JsonValue {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    return json;
  }
  const named = input.fields
    .filter((field) => getOption(field, latest))
    .flatMap(({ name, jsonName }) => [name, jsonName])
    .filter((name) => Object.hasOwn(json, name) && json[name] === latestWord);
  return named.length === 0 ? json : { ...json, ...Object.fromEntries(named.map((name) => [name, `${latestBlock}`])) };
}

function bodySentence(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  if (!isFieldError(cause)) {
    return "The request body does not have the expected shape.";
  }
  const field = cause.field();
  return `${field.kind === "field" ? field.jsonName : field.name}: ${shorten(cause.message)}.`;
}

function textParser(field: DescField, name: string): Parse {
  if (field.enum !== undefined) {
    return enumParser(field.enum, name);
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return (text) => text;
    case ScalarType.BOOL:
      return (text) => parseFlag(text, name);
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return (text) => Number(parseInteger(text, name, -(2n ** 31n), 2n ** 31n - 1n));
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return (text) => Number(parseInteger(text, name, 0n, 2n ** 32n - 1n));
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return (text) => parseInteger(text, name, -(2n ** 63n), 2n ** 63n - 1n);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return getOption(field, latest)
        ? (text) => (text === latestWord ? latestBlock : parseInteger(text, name, 0n, 2n ** 64n - 1n, latestWord))
        : (text) => parseInteger(text, name, 0n, 2n ** 64n - 1n);
    default:
      throw new Error(`${field.toString()} cannot be filled from a path or a query.`);
  }
}

/** @param word that its caller takes in place of a number. */
function parseInteger(text: string, name: string, least: bigint, most: bigint, word?: string): bigint {
  // Twenty digits hold every 64-bit number; longer text is not worth converting.
  const value = /^(0|-?[1-9][0-9]{0,19})$/.test(text) ? BigInt(text) : undefined;
  if (value === undefined || value < least || value > most) {
    throw new Failure(
      "INVALID_REQUEST",
      `${name} must be a whole number from ${least} to ${most}${word === undefined ? "" : `, or ${word}`}, not "${shorten(text)}".`,
    );
  }
  return value;
}

/** A flag: `?verbose` and `?verbose=true` set it. */
function parseFlag(text: string, name: string): boolean {
  if (text === "true" || text === "") {
    return true;
  }
  if (text === "false") {
    return false;
  }
  throw new Failure("INVALID_REQUEST", `${name} must be true or false, not "${shorten(text)}".`);
}

function enumParser(desc: DescEnum, name: string): Parse {
  const numbers = new Map([...enumWords(desc)].map(([number, word]) => [word, number]));
  return (text) => {
    const number = numbers.get(text);
    if (number === undefined) {
      throw new Failure(
        "INVALID_REQUEST",
        `${name} must be one of ${[...numbers.keys()].join(", ")}, not "${shorten(text)}".`,
      );
    }
    return number;
  };
}

function shorten(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
