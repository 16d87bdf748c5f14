/**
 * Asks a database for one number so that any number of probes costs at most one query a second, and a database that
 * hangs costs one second. There is never more than one query under way; one that hangs is waited for by nobody, and
 * when it answers after all, its answer counts again.
 */

/** A value that is known, or null while it cannot be obtained. */
export interface BoundedProbe {
  /** The value at once when it is fresh enough, otherwise a promise of it. Never rejects. */
  read(): number | null | Promise<number | null>;
}

export interface BoundedProbeParts {
  readonly query: () => Promise<number>;
  /** How long an answer is good for. */
  readonly maxAgeMs: number;
  /** How long an answer is waited for. */
  readonly timeoutMs: number;
  readonly nowMs: () => number;
  /** Hears when the value becomes known (undefined) or unknown (why). */
  readonly onChange: (problem: string | undefined) => void;
}

/** A query that hung this long is given up, so that a connection lost without a word is replaced. */
const abandonAfterMs = 30_000;

/** Builds a probe. Nothing is asked before the first read. */
export function createBoundedProbe(parts: BoundedProbeParts): BoundedProbe {
  const { query, maxAgeMs, timeoutMs, nowMs, onChange } = parts;
  let value: number | null = null;
  let takenAtMs = -Infinity;
  let problem: string | undefined;
  let waiting: Promise<number | null> | undefined;
  let queryStartedAtMs: number | undefined;
  let generation = 0;

  function settle(result: number | null, newProblem: string | undefined): number | null {
    value = result;
    takenAtMs = nowMs();
    if ((newProblem === undefined) !== (problem === undefined)) {
      onChange(newProblem);
    }
    problem = newProblem;
    return result;
  }

  function ask(): Promise<number | null> {
    const mine = ++generation;
    queryStartedAtMs = nowMs();
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        waiting = undefined;
        resolve(settle(null, `no answer within ${timeoutMs} ms`));
      }, timeoutMs);
      const finish = (result: number | null, newProblem: string | undefined): void => {
        if (mine !== generation) {
          return;
        }
        clearTimeout(timer);
        queryStartedAtMs = undefined;
        waiting = undefined;
        resolve(settle(result, newProblem));
      };
      void Promise.resolve()
        .then(query)
        .then(
          (result) => finish(result, undefined),
          (error: unknown) => finish(null, error instanceof Error ? error.message : String(error)),
        );
    });
  }

  return {
    read() {
      if (nowMs() - takenAtMs < maxAgeMs) {
        return value;
      }
      if (waiting !== undefined) {
        return waiting;
      }
      if (queryStartedAtMs !== undefined && nowMs() - queryStartedAtMs < abandonAfterMs) {
        return null;
      }
      waiting = ask();
      return waiting;
    },
  };
}
