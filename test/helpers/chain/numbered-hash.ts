/** The hash that is a number: 0x and 64 hex digits, which `Number` reads back. */
export function numberedHash(number: number): string {
  return `0x${number.toString(16).padStart(64, "0")}`;
}
