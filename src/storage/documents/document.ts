/**
 * Reads and changes a document without rewriting it: the text of a part is cut out or put in as it was written, so that
 * `1.0` stays `1.0`, a number of thirty digits keeps them all, and what a change does not name stays as it is.
 */
import { endOfString } from "../../base/text/json-string.js";
import { endOfValue, nextPart, quote, skipSpace, stringAt } from "./json-text.js";

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

/**
 * The text of one item of an array.
 *
 * @param array valid JSON text of an array, or a chunk of one.
 * @param index position from 0.
 * @returns the item's text; undefined when it has no such item.
 */
export function sliceItem(array: string, index: number): string | undefined {
  let position = 0;
  for (const { start, end } of eachItem(array)) {
    if (position === index) {
      return array.slice(start, end);
    }
    position++;
  }
  return undefined;
}

/** How many items an array has, or a chunk of one. */
export function countItems(array: string): number {
  let count = 0;
  for (const _ of eachItem(array)) {
    count++;
  }
  return count;
}

/** The members of an object, in order. */
export function membersOf(object: string): Member[] {
  return [...eachMember(object)];
}

/** The members of an object, in order, one by one. */
export function* eachMember(object: string): Generator<Member, undefined> {
  let i = skipSpace(object, object.indexOf("{") + 1);
  while (object.charCodeAt(i) === quote) {
    const nameEnd = endOfString(object, i) + 1;
    const valueStart = skipSpace(object, skipSpace(object, nameEnd) + 1);
    const valueEnd = endOfValue(object, valueStart);
    yield { name: stringAt(object, i, nameEnd), start: i, valueStart, valueEnd };
    i = nextPart(object, valueEnd);
  }
}

/** The items of an array, or of a chunk of one, in order. */
export function itemsOf(array: string): Range[] {
  return [...eachItem(array)];
}

/** Where the first item begins: past the bracket, or past the comma where the text is that of a later chunk. */
export function firstItem(array: string): number {
  return skipSpace(array, skipSpace(array, 0) + 1);
}

function* eachItem(array: string): Generator<Range> {
  let i = firstItem(array);
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
