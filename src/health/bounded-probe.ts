/**
 * Reads one number from a database at a bounded cost. Any number of reads causes at most one query per `maxAgeMs`, and
 * a hung database delays a read by at most `timeoutMs`. A new query starts only after the last one finished or was
 * abandoned. Reads do not wait for a query that has timed out, but its late result still counts.
 */
import { isDatabaseBusy, publicReasonOf } from "../base/errors/database-error-kind.js";

/**
 * Returns the number immediately if it is fresh enough, otherwise a promise; null while the number is unavailable. Never
 * rejects.
 */
export type BoundedProbe = () => number | null | Promise<number | null>;

export interface BoundedProbeDeps {
  readonly query: () => Promise<number>;
  readonly maxAgeMs: number;
  /** Longest time that a read waits for the query. */
  readonly timeoutMs: number;
  readonly nowMs: () => number;
  /**
   * Returns true if the database completes no query at all; the value then becomes null after a timeout. A database
   * that still completes other queries is only busy, and the probe retains the last value.
   */
  readonly isStalled: () => boolean;
  /**
   * Called when the value becomes available (undefined) or unavailable (the reason: an error code or a message), and
   * when the reason changes.
   */
  readonly onChange: (problem: string | undefined) => void;
}

/** Age at which a hung query is abandoned. A new query then replaces a connection that was lost without an error. */
const abandonAfterMs = 30_000;

/** Creates a probe. The first query starts with the first read. */
export function createBoundedProbe(deps: BoundedProbeDeps): BoundedProbe {
  const { query, maxAgeMs, timeoutMs, nowMs, isStalled, onChange } = deps;
  let value: number | null = null;
  let sampledAtMs = -Infinity;
  let problem: string | undefined;
  let pendingRead: Promise<number | null> | undefined;
  let queryStartedAtMs: number | undefined;
  let generation = 0;

  function record(result: number | null, newProblem: string | undefined): number | null {
    value = result;
    sampledAtMs = nowMs();
    if (newProblem !== problem) {
      problem = newProblem;
      onChange(newProblem);
    }
    return result;
  }

  function recordTimeout(): number | null {
    return value !== null && !isStalled()
      ? record(value, undefined)
      : record(null, `no response within ${timeoutMs} ms`);
  }

  function probe(): Promise<number | null> {
    const ownGeneration = ++generation;
    queryStartedAtMs = nowMs();
    let isFinished = false;
    return new Promise((resolve) => {
      // Yield to the event loop twice first: a result that arrived while this process was busy takes precedence.
      const timeOut = (): void => {
        if (!isFinished && ownGeneration === generation) {
          pendingRead = undefined;
          resolve(recordTimeout());
        }
      };
      const timer = setTimeout(() => setImmediate(() => setImmediate(timeOut)), timeoutMs);
      const finish = (result: number | null, newProblem: string | undefined): void => {
        if (ownGeneration !== generation) {
          return;
        }
        isFinished = true;
        clearTimeout(timer);
        queryStartedAtMs = undefined;
        pendingRead = undefined;
        resolve(record(result, newProblem));
      };
      void Promise.resolve()
        .then(query)
        .then(
          (result) => finish(result, undefined),
          (error: unknown) =>
            isDatabaseBusy(error) && value !== null ? finish(value, undefined) : finish(null, publicReasonOf(error)),
        );
    });
  }

  return () => {
    if (nowMs() - sampledAtMs < maxAgeMs) {
      return value;
    }
    if (pendingRead !== undefined) {
      return pendingRead;
    }
    if (queryStartedAtMs !== undefined && nowMs() - queryStartedAtMs < abandonAfterMs) {
      return recordTimeout();
    }
    return (pendingRead = probe());
  };
}
