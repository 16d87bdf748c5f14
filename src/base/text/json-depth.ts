import { endOfString } from "./json-string.js";

/**
 * Returns true if JSON text is nested deeper than `levels`. Counts brackets outside of strings and does not check that
 * they match. Call it before a parser that deep nesting would slow down.
 */
export function isNestedDeeper(text: string, levels: number): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x22: // "
        i = endOfString(text, i);
        if (i < 0) {
          return false;
        }
        break;
      case 0x5c: // \
        i++;
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > levels) {
          return true;
        }
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
    }
  }
  return false;
}
