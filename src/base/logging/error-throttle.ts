/**
 * Trouble that comes again and again, as a database that is away makes it: the log has the first of each kind as it is,
 * then once a minute how often it came, and the end of it.
 */
import type { Logger } from "./log.js";
import { errorMessage } from "../errors/error-message.js";

export interface TroubleLogDeps {
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  readonly level?: "warn" | "error";
  /** Fields of every line. */
  readonly fields: object;
  /** What is the matter. */
  readonly message: string;
  /** That it is over; left out where nobody can tell. */
  readonly over?: string;
  readonly nowMs?: () => number;
}

export interface ErrorThrottle {
  /** It happened; `fields` are of the first line alone. */
  failed(error: unknown, fields?: object): void;
  /** It went well. */
  well(): void;
}

/** How often trouble that goes on has a line. */
const lineEveryMs = 60_000;
/** What has not come for so long is told anew: longer than between two tries of anything. */
const forgetAfterMs = 10 * lineEveryMs;
/** What is of more kinds than this is of the last one. */
const maxKinds = 16;

interface Kind {
  /** How often it came since its last line. */
  more: number;
  linedMs: number;
  lastMs: number;
}

/** Builds the log; nothing has happened yet. */
export function createErrorThrottle(deps: TroubleLogDeps): ErrorThrottle {
  const { log, level = "error", message, over, nowMs = Date.now } = deps;
  const kinds = new Map<string, Kind>();
  /** There was a line of trouble, and none of its end since then. */
  let isTold = false;

  function forgetOld(now: number): void {
    for (const [name, { lastMs, more }] of kinds) {
      if (now - lastMs >= forgetAfterMs && more === 0) {
        kinds.delete(name);
      }
    }
  }

  return {
    failed(error, fields = {}) {
      const now = nowMs();
      forgetOld(now);
      const name = nameOf(error);
      const key = kinds.has(name) || kinds.size < maxKinds ? name : "";
      const kind = kinds.get(key);
      if (kind === undefined) {
        kinds.set(key, { more: 0, linedMs: now, lastMs: now });
        isTold = true;
        log[level]({ ...deps.fields, ...fields, err: error }, message);
        return;
      }
      kind.more++;
      kind.lastMs = now;
      if (now - kind.linedMs >= lineEveryMs) {
        const { more } = kind;
        Object.assign(kind, { more: 0, linedMs: now });
        isTold = true;
        log[level]({ ...deps.fields, more, problem: errorMessage(error) }, `${message} (${more} more times)`);
      }
    },

    well() {
      if (isTold) {
        isTold = false;
        const more = [...kinds.values()].reduce((sum, kind) => sum + kind.more, 0);
        kinds.forEach((kind) => (kind.more = 0));
        if (over !== undefined) {
          log.info({ ...deps.fields, ...(more > 0 && { more }) }, over);
        }
      }
    },
  };
}

/** Errors of one kind have the same name, whatever they say of this time. */
function nameOf(error: unknown): string {
  const { code, stack = "" } = (error ?? {}) as NodeJS.ErrnoException;
  return code ?? `${errorMessage(error)} ${stack.split("\n").find((line) => line.trim().startsWith("at ")) ?? ""}`;
}
