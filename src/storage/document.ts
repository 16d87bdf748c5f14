/**
 * Reads and changes a document without rewriting it: the text of a part is cut out or put in as it was written, so that
 * `1.0` stays `1.0`, a number of thirty digits keeps them all, and what a change does not name stays as it is.
 */
import { Failure } from "../rpc/errors.js";
import { isNestedDeeper } from "../base/json-depth.js";

/** Most bytes of a document. */
export const maxDocumentBytes = 1024 * 1024;
/** Deepest nesting of a document. */
export const maxDocumentDepth = 64;

/** A member of an object, as positions in the object's text. */
export interface Member {
  readonly name: string;
  /** Where its name begins. */
  readonly start: number;
  readonly valueStart: number;
  readonly valueEnd: number;
}

/** Part of a text. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;

/**
 * The text of one item of an array.
 *
 * @param array valid JSON text of an array.
 * @param index position from 0.
 * @returns the item's text; the array's length instead when it has no such item.
 */
export function sliceItem(array: string, index: number): string | number {
  let position = 0;
  for (const { start, end } of eachItem(array)) {
    if (position === index) {
      return array.slice(start, end);
    }
    position++;
  }
  return position;
}

/** Position of the quote that ends the string which starts at `start`; -1 when there is none. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end >= 0 && isEscaped(text, end)) {
    end = text.indexOf('"', end + 1);
  }
  return end;
}

function isEscaped(text: string, position: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(position - 1 - backslashes) === backslash) {
    backslashes++;
  }
  return backslashes % 2 === 1;
}

/**
 * Checks that a text can be a document: JSON, not too large, not too deep, and no object with two members of one name,
 * since readers would disagree about which of them counts.
 *
 * @param what what the text is, to start the sentence of an error.
 * @throws Failure INVALID_REQUEST
 */
export function checkJson(what: string, text: string, maxBytes = maxDocumentBytes): void {
  if (Buffer.byteLength(text) > maxBytes) {
    throw new Failure("INVALID_REQUEST", `${what} must not be larger than ${maxBytes} bytes.`);
  }
  checkDepth(what, text);
  try {
    JSON.parse(text);
  } catch {
    throw new Failure("INVALID_REQUEST", `${what} is not JSON.`);
  }
  checkNames(what, text);
}

/**
 * Checks how deep a text is nested.
 *
 * @throws Failure INVALID_REQUEST
 */
export function checkDepth(what: string, text: string): void {
  if (isNestedDeeper(text, maxDocumentDepth)) {
    throw new Failure("INVALID_REQUEST", `${what} must not be nested deeper than ${maxDocumentDepth} levels.`);
  }
}

function checkNames(what: string, text: string): void {
  const open: (Set<string> | undefined)[] = [];
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case quote: {
        const end = endOfString(text, i);
        const names = open.at(-1);
        if (names !== undefined && text.charCodeAt(skipSpace(text, end + 1)) === 0x3a) {
          const name = JSON.parse(text.slice(i, end + 1)) as string;
          if (names.has(name)) {
            throw new Failure("INVALID_REQUEST", `${what} has an object with two members of one name.`);
          }
          names.add(name);
        }
        i = end;
        break;
      }
      case 0x7b: // {
        open.push(new Set());
        break;
      case 0x5b: // [
        open.push(undefined);
        break;
      case 0x5d: // ]
      case 0x7d: // }
        open.pop();
    }
  }
}

/** Type of a JSON value. */
export function typeOfJson(text: string): JsonType {
  switch (text.charAt(skipSpace(text, 0))) {
    case "{":
      return "object";
    case "[":
      return "array";
    case '"':
      return "string";
    case "t":
    case "f":
      return "boolean";
    case "n":
      return "null";
    default:
      return "number";
  }
}

/** Type of a JSON value. */
export type JsonType = "object" | "array" | "string" | "number" | "boolean" | "null";

/** The members of an object, in order. */
export function membersOf(object: string): Member[] {
  const members: Member[] = [];
  let i = skipSpace(object, object.indexOf("{") + 1);
  while (object.charCodeAt(i) === quote) {
    const nameEnd = endOfString(object, i) + 1;
    const valueStart = skipSpace(object, skipSpace(object, nameEnd) + 1);
    const valueEnd = endOfValue(object, valueStart);
    members.push({ name: JSON.parse(object.slice(i, nameEnd)) as string, start: i, valueStart, valueEnd });
    i = nextPart(object, valueEnd);
  }
  return members;
}

/** The items of an array, in order. */
export function itemsOf(array: string): Range[] {
  return [...eachItem(array)];
}

function* eachItem(array: string): Generator<Range> {
  let i = skipSpace(array, array.indexOf("[") + 1);
  while (i < array.length && array.charAt(i) !== "]") {
    const end = endOfValue(array, i);
    yield { start: i, end };
    i = nextPart(array, end);
  }
}

/** The object with this member: its value replaced, or a new one at the end. */
export function setMember(object: string, name: string, value: string): string {
  const members = membersOf(object);
  const member = members.find((one) => one.name === name);
  return member === undefined
    ? append(object, members.at(-1)?.valueEnd, `${JSON.stringify(name)}:${value}`)
    : replaceValue(object, member, value);
}

/** The object with another value for one of its members. */
export function replaceValue(object: string, { valueStart, valueEnd }: Member, value: string): string {
  return object.slice(0, valueStart) + value + object.slice(valueEnd);
}

/** The object without this member; undefined when it has none. */
export function deleteMember(object: string, name: string): string | undefined {
  const parts = membersOf(object).map(({ name: own, start, valueEnd }) => ({ own, start, end: valueEnd }));
  const index = parts.findIndex(({ own }) => own === name);
  return index < 0 ? undefined : withoutPart(object, parts, index);
}

/** The array with another item at this position. */
export function setItem(array: string, items: readonly Range[], index: number, value: string): string {
  const { start, end } = items[index]!;
  return array.slice(0, start) + value + array.slice(end);
}

/** The array with one more item. */
export function appendItem(array: string, items: readonly Range[], value: string): string {
  return append(array, items.at(-1)?.end, value);
}

/** The array without the item at this position. */
export function deleteItem(array: string, items: readonly Range[], index: number): string {
  return withoutPart(array, items, index);
}

function append(text: string, lastEnd: number | undefined, part: string): string {
  if (lastEnd !== undefined) {
    return `${text.slice(0, lastEnd)},${part}${text.slice(lastEnd)}`;
  }
  const opened = skipSpace(text, 0) + 1;
  return text.slice(0, opened) + part + text.slice(skipSpace(text, opened));
}

/** Takes a part away with the comma that then is one too many: the one after it, or for the last part the one before. */
function withoutPart(text: string, parts: readonly Range[], index: number): string {
  const { start, end } = parts[index]!;
  const next = parts[index + 1];
  if (next !== undefined) {
    return text.slice(0, start) + text.slice(next.start);
  }
  return text.slice(0, parts[index - 1]?.end ?? start) + text.slice(end);
}

function skipSpace(text: string, from: number): number {
  let i = from;
  while (i < text.length && text.charCodeAt(i) <= 0x20) {
    i++;
  }
  return i;
}

/** Past the comma after a part, if there is one. */
function nextPart(text: string, end: number): number {
  const i = skipSpace(text, end);
  return text.charCodeAt(i) === comma ? skipSpace(text, i + 1) : i;
}

function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let i = start; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case quote:
        i = endOfString(text, i);
        if (depth === 0) {
          return i + 1;
        }
        break;
      case 0x5b: // [
      case 0x7b: // {
        depth++;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        if (depth === 0) {
          return i;
        }
        if (--depth === 0) {
          return i + 1;
        }
        break;
      case comma:
      case 0x20:
      case 0x0a:
      case 0x0d:
      case 0x09:
        if (depth === 0) {
          return i;
        }
    }
  }
  return text.length;
}
