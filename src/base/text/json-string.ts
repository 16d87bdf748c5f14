/** Strings in JSON text. */

/** Returns the position of the quote that closes the string opened at `start`; -1 if it is not closed. */
export function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end >= 0 && isEscaped(text, end)) {
    end = text.indexOf('"', end + 1);
  }
  return end;
}

function isEscaped(text: string, position: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(position - 1 - backslashes) === 0x5c) {
    backslashes++;
  }
  return backslashes % 2 === 1;
}
