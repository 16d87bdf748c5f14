/**
 * Reads and changes documents as text, without reformatting them. `1.0` stays `1.0`, a 30-digit number keeps all
 * digits, and text outside the changed part stays the same.
 */
import { endOfString } from "../../base/text/json-string.js";
import { endOfValue, nextPart, quote, skipSpace, stringAt } from "./json-text.js";

/** Member of an object, as positions in the object's text. */
export interface Member {
  readonly name: string;
  readonly start: number;
  readonly valueStart: number;
  readonly valueEnd: number;
}

/** Range of positions in a text; the end is exclusive. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** Returns the text of an item of an array, or of a chunk of one; undefined if it has no such item. */
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

export function countItems(array: string): number {
  let count = 0;
  for (const _ of eachItem(array)) {
    count++;
  }
  return count;
}

export function membersOf(object: string): Member[] {
  return [...eachMember(object)];
}

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

/** Returns the positions of the items of an array, or of a chunk of an array, in order. */
export function itemsOf(array: string): Range[] {
  return [...eachItem(array)];
}

/** Returns the position of the first item: after the bracket, or after the leading comma of a later chunk. */
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

/** Returns the object with this member set. Replaces the value of an existing member; adds a new member at the end. */
export function setMember(object: string, name: string, value: string): string {
  const members = membersOf(object);
  const member = members.find((each) => each.name === name);
  return member === undefined
    ? append(object, members.at(-1)?.valueEnd, `${JSON.stringify(name)}:${value}`)
    : object.slice(0, member.valueStart) + value + object.slice(member.valueEnd);
}

/** Returns the object without this member; undefined if there is no such member. */
export function deleteMember(object: string, name: string): string | undefined {
  const parts = membersOf(object).map(({ name: own, start, valueEnd }) => ({ own, start, end: valueEnd }));
  const index = parts.findIndex(({ own }) => own === name);
  return index < 0 ? undefined : withoutPart(object, parts, index);
}

export function setItem(array: string, items: readonly Range[], index: number, value: string): string {
  const { start, end } = items[index]!;
  return array.slice(0, start) + value + array.slice(end);
}

export function appendItem(array: string, items: readonly Range[], value: string): string {
  return append(array, items.at(-1)?.end, value);
}

export function deleteItem(array: string, items: readonly Range[], index: number): string {
  return withoutPart(array, items, index);
}

/** Adds a part after the last one, with a comma, or as the only part. */
function append(text: string, lastEnd: number | undefined, part: string): string {
  if (lastEnd !== undefined) {
    return `${text.slice(0, lastEnd)},${part}${text.slice(lastEnd)}`;
  }
  const opened = skipSpace(text, 0) + 1;
  return text.slice(0, opened) + part + text.slice(skipSpace(text, opened));
}

/** Removes a part with one comma: the comma after the part, or before the part if it is the last. */
function withoutPart(text: string, parts: readonly Range[], index: number): string {
  const { start, end } = parts[index]!;
  const next = parts[index + 1];
  if (next !== undefined) {
    return text.slice(0, start) + text.slice(next.start);
  }
  return text.slice(0, parts[index - 1]?.end ?? start) + text.slice(end);
}
