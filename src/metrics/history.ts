/**
 * State of the node over the last day, one point a minute, for readers without Prometheus. The history lives in memory
 * and is empty after a restart.
 */

/** Number of retained points: one day, at one point a minute. */
export const historyPoints = 24 * 60;

/** State of the node at one time. Contains only values that the API makes public at that time. */
export interface HistoryPoint {
  /** Milliseconds since the epoch. */
  readonly atMs: number;
  /** Status as in /health. */
  readonly status: string;
  /** Number of the latest block; null while there is none. */
  readonly block: number | null;
  /** Number of blocks that verified peers have and this node lacks; null while unknown. */
  readonly behind: number | null;
  /** Number of pending transactions; null while the count is unavailable. */
  readonly pending: number | null;
  /** Number of transactions in the blocks since the point before; null for the first point, and while unknown. */
  readonly transactions: number | null;
  /** Number of leaves of the commitment tree; null while unknown. */
  readonly commitments: number | null;
  /** Number of verified peers that are online. */
  readonly online: number;
}

/** Points as columns, which are shorter as JSON. An index is the same point in every column; the oldest comes first. */
export type HistoryColumns = { readonly [Name in keyof HistoryPoint]: readonly HistoryPoint[Name][] };

export interface History {
  /** Adds a point, and drops the points that are older than a day. */
  add(point: HistoryPoint): void;
  /** Returns the number of points ever added. */
  count(): number;
  columns(): HistoryColumns;
  /** Returns the points, oldest first. */
  points(): readonly HistoryPoint[];
}

export function createHistory(maxPoints = historyPoints): History {
  const points: HistoryPoint[] = [];
  let count = 0;
  const column = <Name extends keyof HistoryPoint>(name: Name): HistoryPoint[Name][] =>
    points.map((point) => point[name]);
  return {
    add(point) {
      points.push(point);
      points.splice(0, points.length - maxPoints);
      count++;
    },
    count: () => count,
    points: () => [...points],
    columns: () => ({
      atMs: column("atMs"),
      status: column("status"),
      block: column("block"),
      behind: column("behind"),
      pending: column("pending"),
      transactions: column("transactions"),
      commitments: column("commitments"),
      online: column("online"),
    }),
  };
}
