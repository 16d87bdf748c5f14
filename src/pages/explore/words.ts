/** Formats times, sizes and long names. */

/** Returns the first and last digits of a hash or key. */
export function short(name: string): string {
  return name.length <= 20 ? name : `${name.slice(0, name.startsWith("stor-") ? 11 : 10)}…${name.slice(-4)}`;
}

const units = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const;

/** Milliseconds by which the node's clock is ahead of the reader's. */
let aheadMs = 0;

/** Sets the node's clock, by which ages are counted: the reader's may differ by minutes. Its seconds are whole. */
export function setClock(nodeMs: number): void {
  const foundMs = nodeMs - Date.now();
  if (!Number.isNaN(foundMs)) {
    aheadMs = Math.abs(foundMs) > 5_000 ? foundMs : 0;
  }
}

/** Returns an age in one unit. */
export function ago(ms: number, nowMs = Date.now() + aheadMs): string {
  const seconds = Math.round((nowMs - ms) / 1000);
  if (seconds < 1) {
    return seconds > -5 ? "now" : "in the future";
  }
  const [unit, size] = units.find(([, size]) => seconds >= size)!;
  return `${Math.floor(seconds / size)} ${unit} ago`;
}

/** Returns a time in the reader's time zone, with the zone. */
export function timeOf(ms: number): string {
  return new Date(ms).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
}

export function sizeOf(bytes: number): string {
  return bytes < 1000 ? `${bytes} bytes` : `${(bytes / 1000).toFixed(bytes < 100_000 ? 1 : 0)} kB`;
}

/** Returns a count with its noun: `one block`, `2 blocks`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Returns a text with at most that many characters, and a mark if some are left out. */
export function cut(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** Returns a text with its control, invisible and direction characters written as escapes, such as `\\u202e`. */
export function visible(text: string): string {
  return text.replace(
    /[\p{Cc}\u00AD\u061C\u115F\u1160\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F\u3164\uFEFF\uFFA0]/gu,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
