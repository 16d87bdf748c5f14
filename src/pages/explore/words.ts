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

/** Returns an age in one unit. */
export function ago(ms: number, nowMs = Date.now()): string {
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
