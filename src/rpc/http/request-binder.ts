/**
 * Makes the request message of an rpc from a plain HTTP request: path parameters and query values by the field's JSON
 * name, or a JSON body. Compiled once for each route; strict, since a guess is worse than an error.
 */
import { type DescField, type DescMessage, ScalarType, create, getOption } from "@bufbuild/protobuf";
import { latest } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { makeImmutable } from "../../base/immutable.js";
import { latestBlock, latestWord } from "../../base/latest-block.js";
import { Failure } from "../errors.js";
import { enumWords } from "../codec/enum-words.js";
import { expectationOf, type Range, rangeOf } from "../codec/expectations.js";
import { givenTwice, wrongValue } from "../parameters.js";
import { readJsonText } from "../codec/json-request.js";
import { jsonNameOf, requestRules } from "../codec/request-rules.js";

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

  const check = requestRules(input);
  return (parameters, query, body) => {
    const message = (hasBody ? readJsonText(input, body ?? "") : create(input)) as unknown as Message;
    if (query !== "" && fromQuery.size > 0) {
      bindQuery(message, query, fromQuery);
    }
    for (let i = 0; i < fromPath.length; i++) {
      const field = fromPath[i]!;
      message[field.key] = field.parse(parameters[i]!);
    }
    check(message, jsonNameOf);
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
      throw givenTwice(name);
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

function textParser(field: DescField, name: string): Parse {
  const words = field.enum === undefined ? new Map<number, string>() : enumWords(field.enum);
  const expected = expectationOf(field, (number) => words.get(number)!);
  const read = textReader(field, words);
  return (text) => {
    const value = read(text);
    if (value === undefined) {
      throw wrongValue(name, expected, text);
    }
    return value;
  };
}

/** Text to the value of a field; undefined for what is none. */
function textReader(field: DescField, words: ReadonlyMap<number, string>): Parse {
  if (field.enum !== undefined) {
    const numbers = new Map([...words].filter(([number]) => number !== 0).map(([number, word]) => [word, number]));
    return (text) => numbers.get(text);
  }
  const range = rangeOf(field);
  if (range !== undefined) {
    const isLarge = isLong(field);
    const number: Parse = (text) => {
      const value = readInteger(text, range);
      return value === undefined || isLarge ? value : Number(value);
    };
    return getOption(field, latest) ? (text) => (text === latestWord ? latestBlock : number(text)) : number;
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return (text) => text;
    case ScalarType.BOOL:
      return (text) => flags.get(text);
    default:
      throw new Error(`${field.toString()} cannot be filled from a path or a query.`);
  }
}

/** `?verbose` is `?verbose=true`. */
const flags: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["", true],
  ["false", false],
]);

/** Whether a number has 64 bits, so that it is a bigint in a message. */
function isLong({ scalar }: DescField): boolean {
  return [ScalarType.INT64, ScalarType.SINT64, ScalarType.SFIXED64, ScalarType.UINT64, ScalarType.FIXED64].includes(
    scalar!,
  );
}

function readInteger(text: string, { min, max }: Range): bigint | undefined {
  // Twenty digits hold every 64-bit number; longer text is not worth converting.
  const value = /^(0|-?[1-9][0-9]{0,19})$/.test(text) ? BigInt(text) : undefined;
  return value !== undefined && value >= min && value <= max ? value : undefined;
}
