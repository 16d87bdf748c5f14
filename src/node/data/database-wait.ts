/** A database that is away or locked while a node starts: it is waited for, up to a limit. */
import { setTimeout as sleep } from "node:timers/promises";
import { databaseErrorKindOf } from "../../base/errors/database-error-kind.js";
import { StartError } from "../../base/errors/start-error.js";
import { explainTrouble } from "../../db/open.js";
import type { NodeCore } from "../lifecycle/core.js";

/** The database did not come back before the limit. */
export class DatabaseAwayError extends StartError {}

/** How long a start waits for its database. */
export const waitForDatabaseMs = 120_000;
/** The pauses between attempts, which double. */
const pausesMs = { first: 250, longest: 5_000 };

/** Whether what was thrown may be over by itself in a while. */
function isPassing(error: unknown): boolean {
  const trouble = databaseErrorKindOf(error);
  return trouble !== undefined && trouble !== "damaged";
}

/**
 * Repeats work of the boot until the database answers it. Each cause is logged when it is new, and shown in `/health`.
 *
 * @param work leaves nothing behind when it rejects.
 * @param withinMs how long it is repeated, from the beginning of the first attempt.
 * @throws DatabaseAwayError after that, the signal's reason when the node stops, and at once whatever else `work` throws.
 */
export async function untilDatabaseAnswers<T>(
  { config, log, lifecycle: { signal }, subsystems }: NodeCore,
  work: () => Promise<T>,
  withinMs = waitForDatabaseMs,
): Promise<T> {
  const startMs = performance.now();
  let told: string | undefined;
  for (let pauseMs = pausesMs.first; ; pauseMs = Math.min(2 * pauseMs, pausesMs.longest)) {
    try {
      const result = await work();
      if (told !== undefined) {
        log.info({ subsystem: "chain" }, "The database answers; the start goes on");
      }
      return result;
    } catch (error) {
      if (!isPassing(error)) {
        throw error;
      }
      const { message } = explainTrouble(config.databaseUrl, error);
      const leftMs = startMs + withinMs - performance.now();
      if (leftMs <= 0) {
        const waitedS = Math.round(withinMs / 1_000);
        throw new DatabaseAwayError(`${message} The start has waited ${waitedS} s for it.`, { cause: error });
      }
      if (message !== told) {
        told = message;
        const forS = Math.ceil(leftMs / 1_000);
        log.warn({ subsystem: "chain" }, `${message} The start waits for it, for up to ${forS} s`);
        // Anybody may read this: where the database is stands in the log alone.
        const problem = `The database is ${databaseErrorKindOf(error)}; the start waits for it.`;
        subsystems.set("chain", { error: { message: problem, source: "boot" } });
      }
      await sleep(Math.min(pauseMs, leftMs), undefined, { signal });
    }
  }
}
