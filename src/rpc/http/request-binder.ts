/**
 * Conversion of plain HTTP requests to request messages: path parameters, query values by the field's JSON name or proto
 * name, or a JSON body. Fields of nested messages have dotted names, such as `book.author.name`. Binders are compiled
 * once per route. Binders reject ambiguous requests instead of guessing.
 */
import { create, type DescField, type DescMessage, fromJson, getOption, ScalarType } from "@bufbuild/protobuf";
import { latest } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { makeImmutable } from "../../base/caches/immutable.js";
import { latestBlock, latestKeyword } from "../../base/latest-block.js";
import { decodeBase64 } from "../../base/text/base64.js";
import { readDecimal, readInteger } from "../../base/text/integers.js";
import { showText } from "../../base/text/show-text.js";
import { RpcError } from "../errors.js";
import { enumNames, expectationOf, isLong, putField, type Range, rangeOf, readField } from "../codec/fields.js";
import { repeatedParameter, invalidValue } from "../parameters.js";
import { parseJson, readJsonBytes, readJsonRequest } from "../codec/json-request.js";
import { jsonNameOf, type NameOf, requestValidator } from "../codec/request-rules.js";
import { parseQuery } from "../exchange/query.js";
import type { HttpRoute } from "./http-rule.js";

/**
 * Creates the request message from path parameters (in the template's order), the raw query string and the bytes of the
 * JSON body.
 */
export type RequestBinder = (parameters: readonly string[], query: string, body: Uint8Array | undefined) => object;

const nothing = new Uint8Array();

type Parse = (text: string) => unknown;

/** Field that text can fill, at its location in the request. */
interface TextField {
  /** Dotted JSON names of the field and of the messages around it. */
  readonly path: string;
  readonly isList: boolean;
  /**
   * Parses text, and sets the field to the value, or appends the value to a list.
   *
   * @param name name of the field in the request, for errors.
   */
  readonly put: (message: object, text: string, name: string) => void;
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
    const found = findField(input.fields, name, hasProtoName);
    if (found === undefined || found.isList) {
      throw new Error(`${input.typeName} has no field ${name} that a path could fill.`);
    }
    return found;
  });
  const bound = new Set([...pathFields, ...(body === undefined || body === "*" ? [] : [body.name])]);
  const bindQuery = queryBinder(input.fields.filter(({ name }) => body !== "*" && !bound.has(name)));
  if (input.fields.length === 0) {
    const empty = makeImmutable(create(input));
    return (_parameters, query) => {
      bindQuery(empty, query);
      return empty;
    };
  }

  const read = bodyReader(input, body);
  const check = requestValidator(input);
  return (parameters, query, bytes) => {
    const message = read(bytes ?? nothing);
    const nameOf = bindQuery(message, query);
    for (let i = 0; i < fromPath.length; i++) {
      const { path, put } = fromPath[i]!;
      put(message, parameters[i]!, path);
    }
    check(message, nameOf);
    return message;
  };
}

/** Returns the function that creates the message from the body, or an empty message without a body. */
function bodyReader(input: DescMessage, body: HttpRoute["body"]): (bytes: Uint8Array) => object {
  if (body === undefined) {
    return () => create(input);
  }
  return body === "*"
    ? (bytes) => readJsonBytes(input, bytes)
    : (bytes) => readJsonRequest(input, { [body.jsonName]: parseJson(bytes) });
}

/** Limit on the depth of a field, because messages may be recursive. */
const maxDepth = 16;

/** Returns true if a segment of a dotted path names the field. */
type IsNamed = (field: DescField, segment: string) => boolean;

const hasJsonName: IsNamed = ({ jsonName }, segment) => jsonName === segment;
const hasProtoName: IsNamed = ({ name }, segment) => name === segment;
const hasSimilarName: IsNamed = ({ jsonName, name }, segment) =>
  [jsonName, name].some((each) => normalize(each) === normalize(segment));

/** Returns a name without what callers write in different ways: case, underscores, and brackets of lists. */
function normalize(name: string): string {
  return name.toLowerCase().replaceAll(/_|\[\]/g, "");
}

/**
 * Finds a field that text can fill, by the dotted path of names to it.
 *
 * @param fields fields that the first name can denote.
 * @returns undefined if there is no such field.
 */
function findField(fields: readonly DescField[], path: string, isNamed: IsNamed): TextField | undefined {
  const names = path.split(".", maxDepth + 1);
  const outer: DescField[] = [];
  let candidates = fields;
  for (const name of names) {
    const field = candidates.find((candidate) => isNamed(candidate, name));
    if (field === undefined) {
      return undefined;
    }
    outer.push(field);
    candidates = field.fieldKind === "message" ? field.message.fields : [];
  }
  const jsonPath = outer.map(({ jsonName }) => jsonName).join(".");
  const field = outer.pop()!;
  if (names.length > maxDepth || !isText(field)) {
    return undefined;
  }
  const parse = textParser(field);
  return {
    path: jsonPath,
    isList: field.fieldKind === "list",
    put: (message, text, name) => putField(outer.reduce(openMessage, message), field, parse(text, name)),
  };
}

function openMessage(message: object, field: DescField): object {
  const inner = readField(message, field) ?? create(field.message!);
  putField(message, field, inner);
  return inner as object;
}

/** Fields of lists, of which each list has some. To ignore another one would return a different part of the list. */
const listFields = ["limit", "page_size", "offset", "page_token"];

/**
 * Compiles the function that sets fields from a query. It returns the names of fields, as the query has them.
 *
 * A query has JSON names or proto names, and only lists may repeat one. Unknown names are ignored, because probes and
 * caches add their own. Rejected are those whose author must have meant a field: a name that differs from a known one
 * only in case, `_` or `[]`, and a parameter of other lists.
 *
 * @param open fields of the request that the query can set.
 */
function queryBinder(open: readonly DescField[]): (message: object, query: string) => NameOf {
  const find = (name: string): TextField | undefined =>
    findField(open, name, hasJsonName) ?? findField(open, name, hasProtoName);
  const names = open.flatMap(({ jsonName, name }) => [jsonName, name]);
  const fields = new Map(names.map((name) => [name, find(name)]));
  const similarNames = new Set(names.map(normalize));
  const ofLists = open.filter(({ name }) => listFields.includes(name)).map(({ jsonName }) => jsonName);
  const unknownOfLists = new Set(ofLists.length === 0 ? [] : listFields.map(normalize));

  function checkUnknown(name: string): void {
    const start = normalize(name.split(".", 1)[0]!);
    const meant = similarNames.has(start) ? findField(open, name, hasSimilarName) : undefined;
    if (meant !== undefined) {
      throw new RpcError("INVALID_REQUEST", `There is no parameter ${showText(name)}; use ${meant.path}.`);
    }
    if (unknownOfLists.has(start)) {
      const known = ofLists.join(", ");
      throw new RpcError("INVALID_REQUEST", `This list has no parameter ${showText(name)}, only ${known}.`);
    }
  }

  return (message, query) => {
    if (query === "") {
      return jsonNameOf;
    }
    const seen = new Map<string, string>();
    for (const { name, value = "" } of parseQuery(query)) {
      const field = fields.get(name) ?? (name.includes(".") ? find(name) : undefined);
      if (field === undefined) {
        checkUnknown(name);
        continue;
      }
      if (!field.isList && seen.has(field.path)) {
        throw repeatedParameter(name);
      }
      seen.set(field.path, name);
      field.put(message, value, name);
    }
    return ({ jsonName }) => seen.get(jsonName) ?? jsonName;
  };
}

function textParser(field: DescField): (text: string, name: string) => unknown {
  const names = field.enum === undefined ? new Map<number, string>() : enumNames(field.enum);
  const expected = expectationOf(field, (number) => names.get(number)!);
  const read = textReader(field, names);
  return (text, name) => {
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
      const value = integerIn(range, text);
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
      return decodeBase64;
    case undefined:
      return (text) => readWellKnown(field.message!, text);
    case ScalarType.FLOAT:
      return (text) => {
        const value = readDecimal(text);
        return value !== undefined && Number.isFinite(Math.fround(value)) ? value : undefined;
      };
    default:
      return readDecimal;
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
  ["1", true],
  ["", true],
  ["false", false],
  ["0", false],
]);

function integerIn({ min, max }: Range, text: string): bigint | undefined {
  const value = readInteger(text);
  return value !== undefined && value >= min && value <= max ? value : undefined;
}
