/** Where the parts of a JSON text begin and end. All of it is for valid JSON; of other text it says something or other. */

import { endOfString } from "../../base/text/json-string.js";

export const quote = 0x22;
const comma = 0x2c;

/** Type of a JSON value. */
export type JsonType = "object" | "array" | "string" | "number" | "boolean" | "null";

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

/** The string that stands between these positions, quotes included. */
export function stringAt(text: string, start: number, end: number): string {
  const string = text.slice(start, end);
  return string.includes("\\") ? (JSON.parse(string) as string) : string.slice(1, -1);
}

/** Past the space at a position. */
export function skipSpace(text: string, from: number): number {
  let i = from;
  while (i < text.length && text.charCodeAt(i) <= 0x20) {
    i++;
  }
  return i;
}

/** Past the comma after a part, if there is one. */
export function nextPart(text: string, end: number): number {
  const i = skipSpace(text, end);
  return text.charCodeAt(i) === comma ? skipSpace(text, i + 1) : i;
}

/** Past the value at a position. */
export function endOfValue(text: string, start: number): number {
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

/** A value, and the space around it. */
export function trimmed(text: string): { readonly lead: string; readonly core: string; readonly trail: string } {
  const start = skipSpace(text, 0);
  const end = endOfValue(text, start);
  return { lead: text.slice(0, start), core: text.slice(start, end), trail: text.slice(end) };
}
