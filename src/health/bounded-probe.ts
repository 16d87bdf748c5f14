/**
 * Asks a database for one number so that any number of probes costs at most one query a second, and a database that
 * hangs costs one second. There is never more than one query under way; one that hangs is waited for by nobody, and
 * when it answers after all, its answer counts again.
 */
import { isDatabaseBusy } from "../base/errors/database-error-kind.js";
import { errorMessage } from "../base/errors/error-message.js";

/** A value that is known, or null while it cannot be obtained. */
export interface BoundedProbe {
  /** The value at once when it is fresh enough, otherwise a promise of it. Never rejects. */
  read(): number | null | Promise<number | null>;
}

export interface BoundedProbeDeps {
  readonly query: () => Promise<number>;
  /** How long an answer is good for. */
  readonly maxAgeMs: number;
  /** How long an answer is waited for. */
  readonly timeoutMs: number;
  readonly nowMs: () => number;
  /**
   * Whether whoever is asked answers nothing at all, when the time is up: then the value is unknown. Who answers others
   * meanwhile is busy, and the last value goes on.
   */
  readonly isSilent: () => boolean;
  /** Hears when the value becomes known (undefined) or unknown (why: a code, or words), and when that becomes another why. */
  readonly onChange: (problem: string | undefined) => void;
}

/** The database's code; what it says where there is none. */
function problemOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? errorMessage(error);
}

/** A query that hung this long is given up, so that a connection lost without a word is replaced. */
const abandonAfterMs = 30_000;

/** Builds a probe. Nothing is asked before the first read. */
export function createBoundedProbe(deps: BoundedProbeDeps): BoundedProbe {
  const { query, maxAgeMs, timeoutMs, nowMs, isSilent, onChange } = deps;
  let value: number | null = null;
  let takenAtMs = -Infinity;
  let problem: string | undefined;
  let waiting: Promise<number | null> | undefined;
  let queryStartedAtMs: number | undefined;
  let generation = 0;

  function settle(result: number | null, newProblem: string | undefined): number | null {
    value = result;
    takenAtMs = nowMs();
    const hasChanged = newProblem !== problem;
    problem = newProblem;
    if (hasChanged) {
      onChange(newProblem);
    }
    return result;
  }

  function settleLate(): number | null {
    return value !== null && !isSilent() ? settle(value, undefined) : settle(null, `no answer within ${timeoutMs} ms`);
  }

  function ask(): Promise<number | null> {
    const mine = ++generation;
    queryStartedAtMs = nowMs();
    let isOver = false;
    return new Promise((resolve) => {
      // What has come while this process was at something else is looked at first.
      const giveUp = (): void => {
        if (!isOver && mine === generation) {
          waiting = undefined;
          resolve(settleLate());
        }
      };
      const timer = setTimeout(() => setImmediate(() => setImmediate(giveUp)), timeoutMs);
      const finish = (result: number | null, newProblem: string | undefined): void => {
        if (mine !== generation) {
          return;
        }
        isOver = true;
        clearTimeout(timer);
        queryStartedAtMs = undefined;
        waiting = undefined;
        resolve(settle(result, newProblem));
      };
      void Promise.resolve()
        .then(query)
        .then(
          (result) => finish(result, undefined),
          (error: unknown) =>
            isDatabaseBusy(error) && value !== null ? finish(value, undefined) : finish(null, problemOf(error)),
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
        return settleLate();
      }
      waiting = ask();
      return waiting;
    },
  };
}
