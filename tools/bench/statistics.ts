import type { Result } from "./row.js";

/** Returns the median. */
export function median(figures: readonly number[]): number {
  const sorted = figures.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Returns a percentile of ascending values; 0.99 is the 99th percentile. */
export function percentile(ascending: readonly number[], part: number): number {
  return ascending[Math.floor(ascending.length * part)] ?? NaN;
}

/** Returns p50 and p99 of ascending latencies in milliseconds. */
export function latencyFigures(ascending: readonly number[], of = ""): Record<string, number> {
  return { [`${of}p50 ms`]: percentile(ascending, 0.5), [`${of}p99 ms`]: percentile(ascending, 0.99) };
}

/** Returns the ratio of the medians of two series that were measured alternately, with its range over the rounds. */
export function ratioOfRounds(
  over: readonly number[],
  under: readonly number[],
): Required<Pick<Result, "ratio" | "spread">> {
  const ofRounds = over.slice(0, under.length).map((figure, round) => figure / under[round]!);
  return {
    ratio: median(over) / median(under),
    spread: { low: Math.min(...ofRounds), high: Math.max(...ofRounds) },
  };
}
