/** Waits for a database that is unavailable or locked while a node starts, up to a limit. */
import { setTimeout as sleep } from "node:timers/promises";
import { databaseErrorKindOf, publicReasonOf } from "../../base/errors/database-error-kind.js";
import { StartError } from "../../base/errors/start-error.js";
import { explainError } from "../../db/open.js";
import type { NodeCore } from "./core.js";

export class DatabaseUnavailableError extends StartError {}

/** Limit in milliseconds on the wait of a start for its database. */
const waitForDatabaseMs = 120_000;
/** Pauses in milliseconds between attempts. Each pause is twice as long as the one before, up to the longest. */
const pausesMs = { first: 250, longest: 5_000 };

/** Returns true if the error may pass without intervention: a database error other than corruption. */
function isTransient(error: unknown): boolean {
  const kind = databaseErrorKindOf(error);
  return kind !== undefined && kind !== "damaged";
}

/**
 * Repeats work of the boot until the database responds. Logs each new cause, and shows the kind of error in `/health`.
 *
 * @param work must have no effects if it rejects, because it is then repeated.
 * @param withinMs time in milliseconds for all attempts, from the start of the first one.
 * @throws DatabaseUnavailableError after that time; the signal's reason when the node stops; any other error of `work`
 *   immediately.
 */
export async function untilDatabaseResponds<T>(
  { config, log, lifecycle: { signal }, subsystems }: Pick<NodeCore, "config" | "lifecycle" | "log" | "subsystems">,
  work: () => Promise<T>,
  withinMs = waitForDatabaseMs,
): Promise<T> {
  const startMs = performance.now();
  let logged: string | undefined;
  for (let pauseMs = pausesMs.first; ; pauseMs = Math.min(2 * pauseMs, pausesMs.longest)) {
    try {
      const result = await work();
      if (logged !== undefined) {
        log.info({ subsystem: "chain" }, "The database responds; the start continues");
      }
      return result;
    } catch (error) {
      if (!isTransient(error)) {
        throw error;
      }
      const { message } = explainError(config.databaseUrl, error);
      const leftMs = startMs + withinMs - performance.now();
      if (leftMs <= 0) {
        const waitedS = Math.round(withinMs / 1_000);
        throw new DatabaseUnavailableError(`${message} The start has waited ${waitedS} s for the database.`, {
          cause: error,
        });
      }
      if (message !== logged) {
        logged = message;
        const maxWaitS = Math.ceil(leftMs / 1_000);
        log.warn({ subsystem: "chain" }, `${message} The start waits for it, for up to ${maxWaitS} s`);
        // `/health` is public, so only the log says where the database is.
        const cause = `${databaseErrorKindOf(error)} (${publicReasonOf(error)})`;
        const problem = `The database is ${cause}; the start waits for it.`;
        subsystems.set("chain", { error: { message: problem, source: "boot" } });
      }
      await sleep(Math.min(pauseMs, leftMs), undefined, { signal });
    }
  }
}
