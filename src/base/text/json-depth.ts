import { endOfString } from "./json-string.js";

/**
 * Whether JSON text is nested deeper than so many levels. It looks at the brackets outside of strings alone, and so can
 * be asked before a parser that deep nesting would hold up; how the brackets match is for that parser.
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
