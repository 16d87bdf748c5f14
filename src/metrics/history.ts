/**
 * State of the node over the last day, one point a minute, for readers without Prometheus. The history lives in memory
 * and is empty after a restart.
 */

/** Number of retained points: one day, at one point a minute. */
const maxPoints = 24 * 60;

/** State of the node at one time. Contains only values that the API makes public at that time. */
export interface HistoryPoint {
  readonly atMs: number;
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
type HistoryColumns = { readonly [Name in keyof HistoryPoint]: readonly HistoryPoint[Name][] };

const columnNames = ["atMs", "status", "block", "behind", "pending", "transactions", "commitments", "online"] as const;

export function createHistory() {
  const points: HistoryPoint[] = [];
  let count = 0;
  return {
    /** Adds a point, and drops the points that are older than a day. */
    add(point: HistoryPoint) {
      points.push(point);
      points.splice(0, points.length - maxPoints);
      count++;
    },
    /** Returns the number of points ever added. */
    count: () => count,
    points: (): readonly HistoryPoint[] => [...points],
    columns: () =>
      Object.fromEntries(
        columnNames.map((name) => [name, points.map((point) => point[name])]),
      ) as unknown as HistoryColumns,
  };
}
