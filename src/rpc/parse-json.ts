import { Failure } from "../errors.js";

/** Deepest nesting of a JSON body. */
const maxDepth = 128;

/**
 * Parses the JSON text of a request. Text that is nested too deep is refused after a look at its brackets: parsing a
 * megabyte of them would hold up everybody for a tenth of a second.
 *
 * @throws Failure INVALID_REQUEST
 */
export function parseJson(text: string): unknown {
  if (isTooDeep(text)) {
    throw new Failure("INVALID_REQUEST", `The JSON of the request body is nested deeper than ${maxDepth} levels.`);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new Failure("INVALID_REQUEST", "The request body is not JSON.");
  }
}

/** Looks at brackets outside of strings; how they match is for the parser. */
function isTooDeep(text: string): boolean {
  let depth = 0;
  let isInString = false;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x22: // "
        isInString = !isInString;
        break;
      case 0x5c: // \
        i++;
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (!isInString && ++depth > maxDepth) {
          return true;
        }
        break;
      case 0x5d: // ]
      case 0x7d: // }
        if (!isInString) {
          depth--;
        }
    }
  }
  return false;
}
