/** Series of the charts, from the node's own history of the last day. */

/** History as /status/data has it: columns of points, one a minute, oldest first. */
export interface HistoryAnswer {
  readonly everyMs: number;
  readonly atMs: readonly number[];
  readonly block: readonly (number | null)[];
  readonly transactions: readonly (number | null)[];
  readonly pending: readonly (number | null)[];
  readonly commitments: readonly (number | null)[];
  readonly online: readonly (number | null)[];
}

type Values = readonly (number | null)[];

/** Times in seconds since the epoch, and the value at each; null where it is unknown. */
export interface Series {
  readonly times: readonly number[];
  readonly values: Values;
}

/** Point with its values by chart. */
type Sample = Readonly<Record<SeriesName, number | null>> & { readonly atMs: number };

export type SeriesName = "transactions" | "blocks" | "blockTime" | "pending" | "commitments" | "online";

/** Rates are averaged over a span; of counts the last one stands for it. */
const rates: ReadonlySet<SeriesName> = new Set(["transactions", "blocks", "blockTime", "pending"]);

/**
 * Returns the series of the last `spanMs` before the last point, with one value for each `stepMs`. A step without a
 * point, in which the node did not run, is null.
 */
export function seriesOf(history: HistoryAnswer, name: SeriesName, spanMs: number, stepMs: number): Series {
  const samples = samplesOf(history);
  const endMs = samples.at(-1)?.atMs ?? 0;
  const steps = new Map<number, number[]>();
  for (const { atMs, [name]: value } of samples) {
    // Steps end with the last point, and points that are a little early or late stay in theirs.
    const step = Math.floor((endMs - atMs + history.everyMs / 2) / stepMs);
    if (value !== null && endMs - atMs < spanMs) {
      steps.set(step, [...(steps.get(step) ?? []), value]);
    }
  }
  const first = Math.max(...steps.keys(), 0);
  const all = Array.from({ length: first + 1 }, (_, i) => first - i);
  return {
    times: all.map((step) => Math.round((endMs - step * stepMs) / 1000)),
    values: all.map((step) => combine(steps.get(step), rates.has(name))),
  };
}

function combine(values: readonly number[] | undefined, isRate: boolean): number | null {
  if (values === undefined) {
    return null;
  }
  return isRate ? values.reduce((sum, value) => sum + value, 0) / values.length : values.at(-1)!;
}

function samplesOf(history: HistoryAnswer): Sample[] {
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
