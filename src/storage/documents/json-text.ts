/** Finds the boundaries of values in JSON text. The results are meaningless if the text is not valid JSON. */

import { endOfString } from "../../base/text/json-string.js";

export const quote = 0x22;
const comma = 0x2c;

export type JsonType = "object" | "array" | "string" | "number" | "boolean" | "null";

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

/** Decodes the JSON string between these positions, which include its quotes. */
export function stringAt(text: string, start: number, end: number): string {
  const string = text.slice(start, end);
  return string.includes("\\") ? (JSON.parse(string) as string) : string.slice(1, -1);
}

/** Returns the position after the white space at `from`. */
export function skipSpace(text: string, from: number): number {
  let i = from;
  while (i < text.length && text.charCodeAt(i) <= 0x20) {
    i++;
  }
  return i;
}

/** Returns the position of the next part: after white space, and after a comma if there is one. */
export function nextPart(text: string, end: number): number {
  const i = skipSpace(text, end);
  return text.charCodeAt(i) === comma ? skipSpace(text, i + 1) : i;
}

/** Returns the position after the value that starts at `start`. */
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

/** Splits a text into its JSON value and the text before and after the value. */
export function splitSpace(text: string): { readonly lead: string; readonly core: string; readonly trail: string } {
  const start = skipSpace(text, 0);
  const end = endOfValue(text, start);
  return { lead: text.slice(0, start), core: text.slice(start, end), trail: text.slice(end) };
}
