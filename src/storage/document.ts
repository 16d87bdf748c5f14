/**
 * Reads inside a document without parsing it: the text of a part is cut out as it was written, so that `1.0` stays
 * `1.0` and a number of thirty digits keeps them all.
 */

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
  let start = array.indexOf("[") + 1;
  const end = array.lastIndexOf("]");
  if (array.slice(start, end).trim() === "") {
    return 0;
  }
  let depth = 0;
  let position = 0;
  for (let i = start; i < end; i++) {
    switch (array.charCodeAt(i)) {
      case quote:
        i = endOfString(array, i);
        break;
      case 0x5b: // [
      case 0x7b: // {
        depth++;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
        break;
      case comma:
        if (depth === 0) {
          if (position === index) {
            return array.slice(start, i).trim();
          }
          position++;
          start = i + 1;
        }
    }
  }
  return position === index ? array.slice(start, end).trim() : position + 1;
}

/** Position of the quote that ends the string which starts at `start`. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) {
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
