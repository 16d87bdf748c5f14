import type { Result } from "./row.js";

/** The middle of some figures. */
export function median(figures: readonly number[]): number {
  const sorted = figures.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The figure below which a part of them lies: 0.99 for the 99th percentile. They are given in ascending order. */
export function percentile(ascending: readonly number[], part: number): number {
  return ascending[Math.floor(ascending.length * part)] ?? NaN;
}

/** The usual two of latencies in milliseconds, in ascending order. */
export function latencyFigures(ascending: readonly number[], of = ""): Record<string, number> {
  return { [`${of}p50 ms`]: percentile(ascending, 0.5), [`${of}p99 ms`]: percentile(ascending, 0.99) };
}

/**
 * How many times as large figures are as others that were measured in turns with them: by their medians, and how far that
 * lies apart between rounds.
 */
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
