/**
 * Throttles log lines about repeated errors, such as an unreachable database. Logs the first error of each kind in
 * full, a count at most once per minute, and the recovery.
 */
import type { Logger } from "./log.js";
import { errorMessage } from "../errors/error-message.js";

export interface ErrorThrottleDeps {
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  readonly level?: "warn" | "error";
  readonly fields: object;
  readonly message: string;
  /** Message of the recovery line; left out if recovery cannot be detected. */
  readonly recoveryMessage?: string;
  readonly nowMs?: () => number;
}

export type ErrorThrottle = ReturnType<typeof createErrorThrottle>;

/** Interval in milliseconds between lines about a continuing error. */
const lineEveryMs = 60_000;
/** Time in milliseconds until an error counts as new. It is longer than any retry interval. */
const expiresAfterMs = 10 * lineEveryMs;
/** Limit on kinds that are counted separately; further kinds share one count. */
const maxKinds = 16;

interface Kind {
  /** Number of errors since the last line. */
  more: number;
  lastLineMs: number;
  lastMs: number;
}

export function createErrorThrottle(deps: ErrorThrottleDeps) {
  const { log, level = "error", message, recoveryMessage, nowMs = Date.now } = deps;
  const kinds = new Map<string, Kind>();
  /** True if an error was logged since the last recovery. */
  let isLogged = false;
  /** Number of errors of deleted kinds that no line has counted. */
  let uncounted = 0;

  function deleteExpiredKinds(now: number): void {
    for (const [name, { lastMs, more }] of kinds) {
      if (now - lastMs >= expiresAfterMs) {
        uncounted += more;
        kinds.delete(name);
      }
    }
  }

  return {
    /** Reports an error. `fields` are logged only with the first error of its kind. */
    failed(error: unknown, fields: object = {}) {
      const now = nowMs();
      deleteExpiredKinds(now);
      const name = nameOf(error);
      const key = kinds.has(name) || kinds.size < maxKinds ? name : "";
      const kind = kinds.get(key);
      if (kind === undefined) {
        kinds.set(key, { more: 0, lastLineMs: now, lastMs: now });
        isLogged = true;
        log[level]({ ...deps.fields, ...fields, err: error }, message);
        return;
      }
      kind.more++;
      kind.lastMs = now;
      if (now - kind.lastLineMs >= lineEveryMs) {
        const { more } = kind;
        kind.more = 0;
        kind.lastLineMs = now;
        isLogged = true;
        log[level]({ ...deps.fields, more, problem: errorMessage(error) }, `${message} (${more} more times)`);
      }
    },

    succeeded() {
      if (isLogged) {
        isLogged = false;
        const more = [...kinds.values()].reduce((sum, kind) => sum + kind.more, uncounted);
        uncounted = 0;
        kinds.forEach((kind) => (kind.more = 0));
        if (recoveryMessage !== undefined) {
          log.info({ ...deps.fields, ...(more > 0 && { more }) }, recoveryMessage);
        }
      }
    },
  };
}

/** Returns the kind of an error: its code, or its message with the top stack frame. */
function nameOf(error: unknown): string {
  const { code, stack = "" } = (error ?? {}) as NodeJS.ErrnoException;
  return code ?? `${errorMessage(error)} ${stack.split("\n").find((line) => line.trim().startsWith("at ")) ?? ""}`;
}
