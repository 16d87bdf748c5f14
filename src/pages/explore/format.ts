/** Formats times, sizes, hashes, and texts from untrusted sources. */

/**
 * Shortens a hash, key or address to its first and last digits. Names of up to 20 characters are returned unchanged.
 */
export function short(name: string): string {
  return name.length <= 20 ? name : `${name.slice(0, name.startsWith("stor-") ? 11 : 10)}…${name.slice(-4)}`;
}

const units = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const;

/** Milliseconds by which the node's clock is ahead of the browser's. */
let aheadMs = 0;

/**
 * Sets the current time of the node, by which ages are computed, since the browser's clock may be wrong by minutes. The
 * Date header has a resolution of 1 s, so that differences of up to 5 s are ignored.
 */
export function setClock(nodeMs: number): void {
  const differenceMs = nodeMs - Date.now();
  if (!Number.isNaN(differenceMs)) {
    aheadMs = Math.abs(differenceMs) > 5_000 ? differenceMs : 0;
  }
}

/** Returns the time of the node's clock in milliseconds. */
export function nodeNowMs(): number {
  return Date.now() + aheadMs;
}

/** Returns the age of a time in its largest unit, such as `5 min ago`. */
export function ago(ms: number, nowMs = nodeNowMs()): string {
  const seconds = Math.round((nowMs - ms) / 1000);
  if (seconds < 1) {
    return seconds > -5 ? "now" : "in the future";
  }
  const [unit, size] = units.find(([, size]) => seconds >= size)!;
  return `${Math.floor(seconds / size)} ${unit} ago`;
}

/** Formats a time in the time zone of the browser, with the name of the zone. */
export function timeOf(ms: number): string {
  return new Date(ms).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
}

export function sizeOf(bytes: number): string {
  return bytes < 1000 ? `${bytes} bytes` : `${(bytes / 1000).toFixed(bytes < 100_000 ? 1 : 0)} kB`;
}

/** Returns a number with separators between groups of digits. */
export function grouped(count: number): string {
  return count.toLocaleString("en-US");
}

/** Returns a duration in seconds with at most one decimal, such as `2.5 s`. */
export function secondsOf(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`;
}

/** Returns a count with its noun: `one block`, `2 blocks`. */
export function counted(count: number, singular: string, plural = `${singular}s`): string {
  return `${grouped(count)} ${count === 1 ? singular : plural}`;
}

/** Returns at most `maxLength` characters of a text, with an ellipsis if characters are left out. */
export function truncate(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** Escapes control characters, invisible characters and direction marks, for example as `\\u202e`. */
export function escapeInvisible(text: string): string {
  return text.replace(
    /[\p{Cc}\u00AD\u061C\u115F\u1160\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F\u3164\uFEFF\uFFA0]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
