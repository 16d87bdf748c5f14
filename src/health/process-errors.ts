/**
 * Counts uncaught errors. The process continues: one bad request must not stop the node, but the error must be visible.
 */
import { makeImmutable } from "../base/caches/immutable.js";
import { errorMessage } from "../base/errors/error-message.js";
import { createErrorThrottle, type ErrorThrottleDeps } from "../base/logging/error-throttle.js";

export interface ErrorEvent {
  readonly atMs: bigint;
  /** First line of the error, without the stack. */
  readonly message: string;
  readonly source: string | undefined;
}

/** Error counters of a process. Several nodes in one process share them. */
export class ProcessErrors {
  /** Immutable: each error replaces the counters. */
  counters = makeImmutable({
    uncaughtTotal: 0n,
    unhandledRejectionTotal: 0n,
    lastUncaught: undefined as ErrorEvent | undefined,
  });

  count(kind: "uncaughtException" | "unhandledRejection", error: unknown): void {
    const { uncaughtTotal, unhandledRejectionTotal } = this.counters;
    const change =
      kind === "uncaughtException"
        ? {
            uncaughtTotal: uncaughtTotal + 1n,
            lastUncaught: { atMs: BigInt(Date.now()), message: errorMessage(error), source: kind },
          }
        : { unhandledRejectionTotal: unhandledRejectionTotal + 1n };
    this.counters = makeImmutable({ ...this.counters, ...change });
  }
}

/**
 * Counts the uncaught exceptions of a process that embeds the node. The process itself decides how to handle them.
 *
 * @returns Function that stops the counting.
 */
export function countProcessErrors(errors: ProcessErrors): () => void {
  const onError = (error: Error, kind: NodeJS.UncaughtExceptionOrigin): void => errors.count(kind, error);
  process.on("uncaughtExceptionMonitor", onError);
  return () => process.off("uncaughtExceptionMonitor", onError);
}

/** Counts and logs all later uncaught errors of this process, and keeps the process running. */
export function watchProcess(errors: ProcessErrors, log: ErrorThrottleDeps["log"]): void {
  const watch = (kind: "uncaughtException" | "unhandledRejection", message: string): void => {
    const throttle = createErrorThrottle({ log, fields: {}, message });
    process.on(kind, (error: unknown) => {
      errors.count(kind, error);
      try {
        throttle.failed(error);
      } catch {
        // An error thrown here would end the process.
      }
    });
  };
  watch("uncaughtException", "Uncaught exception");
  watch("unhandledRejection", "Unhandled rejection");
}
