/**
 * What the node was like in the last day, a point a minute, for people who look at it without Prometheus beside it. It is
 * in memory alone: a node that starts has none.
 */

/** How far back it goes. */
export const historyPoints = 24 * 60;

/** How the node was at a time: nothing that the interface does not tell everybody about the moment. */
export interface HistoryPoint {
  /** Milliseconds since the epoch. */
  readonly atMs: number;
  /** The word of /health. */
  readonly status: string;
  /** Number of the newest block; null while there is none. */
  readonly block: number | null;
  /** Blocks that verified peers have and this node has not; null while unknown. */
  readonly behind: number | null;
  /** Pending transactions; null while they cannot be counted. */
  readonly pending: number | null;
  /** Verified peers that are online. */
  readonly online: number;
}

/** The points in columns, which are shorter: the same place in each is the same point, the oldest first. */
export type HistoryColumns = { readonly [Name in keyof HistoryPoint]: readonly HistoryPoint[Name][] };

export interface History {
  /** Adds a point, and forgets what is older than a day. */
  add(point: HistoryPoint): void;
  /** How many points were ever added. */
  count(): number;
  columns(): HistoryColumns;
  /** The oldest first. */
  points(): readonly HistoryPoint[];
}

export function createHistory(keptPoints = historyPoints): History {
  const points: HistoryPoint[] = [];
  let count = 0;
  const column = <Name extends keyof HistoryPoint>(name: Name): HistoryPoint[Name][] =>
    points.map((point) => point[name]);
  return {
    add(point) {
      points.push(point);
      points.splice(0, points.length - keptPoints);
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
      online: column("online"),
    }),
  };
}
