/** Computes the series of the charts from the history of the last day, which the node records. */

/** Response of /status/data: columns of points, one point a minute, oldest first. */
export interface StatusHistory {
  readonly everyMs: number;
  readonly atMs: readonly number[];
  readonly block: readonly (number | null)[];
  readonly transactions: readonly (number | null)[];
  readonly pending: readonly (number | null)[];
  readonly commitments: readonly (number | null)[];
  readonly online: readonly (number | null)[];
}

type Values = readonly (number | null)[];

/** Times in seconds since the epoch, and the value at each time; null if the value is unknown. */
export interface Series {
  readonly times: readonly number[];
  readonly values: Values;
}

/** Point of the history, with its value for each chart. */
type Sample = Readonly<Record<SeriesName, number | null>> & { readonly atMs: number };

export type SeriesName = "transactions" | "blocks" | "blockTime" | "pending" | "commitments" | "online";

/** Series whose values are averaged over a step. The others show the last value of a step. */
const averaged: ReadonlySet<SeriesName> = new Set(["transactions", "blocks", "blockTime", "pending"]);

/**
 * Returns the series of the last `spanMs` before the last point, with one value for each `stepMs`. A step without a
 * point, in which the node did not run, is null.
 */
export function seriesOf(history: StatusHistory, name: SeriesName, spanMs: number, stepMs: number): Series {
  const samples = samplesOf(history);
  const endMs = samples.at(-1)?.atMs ?? 0;
  const steps = new Map<number, number[]>();
  for (const { atMs, [name]: value } of samples) {
    // Steps count back from the last point. Half an interval of tolerance keeps early or late points in their step.
    const step = Math.floor((endMs - atMs + history.everyMs / 2) / stepMs);
    if (value !== null && endMs - atMs < spanMs) {
      steps.set(step, [...(steps.get(step) ?? []), value]);
    }
  }
  const first = Math.max(...steps.keys(), 0);
  const indexes = Array.from({ length: first + 1 }, (_, i) => first - i);
  return {
    times: indexes.map((step) => Math.round((endMs - step * stepMs) / 1000)),
    values: indexes.map((step) => combine(steps.get(step), averaged.has(name))),
  };
}

/** Returns the indexes of values without a known neighbor, which a line does not show. */
export function isolatedPoints(values: ArrayLike<number | null | undefined>): number[] {
  const isKnown = (i: number): boolean => (values[i] ?? null) !== null;
  return Array.from(values, (_, i) => i).filter((i) => isKnown(i) && !isKnown(i - 1) && !isKnown(i + 1));
}

function combine(values: readonly number[] | undefined, isAveraged: boolean): number | null {
  if (values === undefined) {
    return null;
  }
  return isAveraged ? values.reduce((sum, value) => sum + value, 0) / values.length : values.at(-1)!;
}

function samplesOf(history: StatusHistory): Sample[] {
  const { atMs, block } = history;
  return atMs.map((ms, i) => {
    const minutes = i === 0 ? 0 : (ms - atMs[i - 1]!) / 60_000;
    const isAfterGap = i === 0 || minutes <= 0 || ms - atMs[i - 1]! > 2.5 * history.everyMs;
    const [before, now] = [block[i - 1] ?? null, block[i] ?? null];
    const blocks = isAfterGap || before === null || now === null ? null : (now - before) / minutes;
    const transactions = history.transactions[i] ?? null;
    return {
      atMs: ms,
      blocks,
      blockTime: blocks === null || blocks === 0 ? null : 60 / blocks,
      transactions: isAfterGap || transactions === null ? null : transactions / minutes,
      pending: history.pending[i] ?? null,
      commitments: history.commitments[i] ?? null,
      online: history.online[i] ?? null,
    };
  });
}
