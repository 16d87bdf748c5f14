/** Detection and reporting of corruption: stored data that is not what was written. */
import { isDatabaseCorruption, markDatabaseError } from "./database-error-kind.js";

/** Error for data that differs from what was stored. The message is for the operator, and is never sent to a caller. */
export class CorruptionError extends Error {
  override readonly name = "CorruptionError";

  constructor(message: string) {
    super(message);
    markDatabaseError(this, "damaged");
  }
}

export type CorruptionMonitor = ReturnType<typeof createCorruptionMonitor>;

/**
 * Creates the monitor, which records corrupt items until a later read finds them intact.
 *
 * @param onChange called with one summary of the corrupt items when it changes; undefined when none is left.
 */
export function createCorruptionMonitor(onChange: (message: string | undefined) => void) {
  const items = new Map<string, string>();
  const recordedMs = new Map<string, number>();
  let reported: string | undefined;
  const recordedErrors = new WeakSet<object>();

  function report(): void {
    const message = summarize(items);
    if (message !== reported) {
      reported = message;
      onChange(message);
    }
  }

  function remove(subject: string): boolean {
    recordedMs.delete(subject);
    return items.delete(subject);
  }

  /** Records that an item is corrupt, with a message for the operator; clears the record if there is no message. */
  function record(subject: string, message: string | undefined): void {
    if (message === undefined ? remove(subject) : items.get(subject) !== message) {
      if (message !== undefined) {
        items.set(subject, message);
        recordedMs.set(subject, performance.now());
      }
      report();
    }
  }

  /** Runs work that reads and writes many items. Records corruption, but success clears no record. */
  async function run<T>(subject: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (isDatabaseCorruption(error)) {
        recordedErrors.add(error as object);
        record(subject, messageFor(error, subject));
      }
      throw error;
    }
  }

  return {
    /**
     * Reads an item. Records the item if the read throws a corruption error, and clears it when a later read succeeds.
     * While any item is corrupt, the monitor reports nothing as missing, because an index that leads to it may be
     * corrupt.
     *
     * @param subject name of the item; reads under one name must read the same item.
     * @param mayLack returns true if the result may lack something. Default: true if the result is undefined.
     * @param isIntact returns true if the result shows that the item is intact. Default: always true.
     * @throws CorruptionError if the result may lack something while another item is corrupt.
     */
    async read<T>(
      subject: string,
      read: () => Promise<T>,
      mayLack = (result: T): boolean => result === undefined,
      isIntact = (_: T): boolean => true,
    ): Promise<T> {
      const result = await run(subject, read);
      if (items.size > 0) {
        if (isIntact(result)) {
          record(subject, undefined);
        }
        if (items.size > 0 && mayLack(result)) {
          // Other items are corrupt, so a missing item may exist all the same.
          const error = new CorruptionError(
            "Other data in the database is corrupt, so it is unknown if this item exists.",
          );
          recordedErrors.add(error);
          throw error;
        }
      }
      return result;
    },
    run,
    record,
    /** Clears the items that were recorded at or after this time of the monotonic clock. */
    withdraw(sinceMs: number) {
      for (const [subject, ms] of recordedMs) {
        if (ms >= sinceMs) {
          remove(subject);
        }
      }
      report();
    },
    /** Records an error that ended a request, if it means corruption that is not recorded yet. */
    recordRequestError(error: unknown) {
      if (isDatabaseCorruption(error) && !recordedErrors.has(error as object)) {
        record(`a request: ${messageFor(error, "a request")}`, messageFor(error, "requested data"));
      }
    },
    /** Returns the messages of the corrupt items, by item. */
    corruptItems: (): ReadonlyMap<string, string> => items,
  };
}

export function messageFor(error: unknown, subject: string): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return error instanceof CorruptionError
    ? message
    : `The database reports corruption (${code ?? message}): ${subject}.`;
}

function summarize(items: ReadonlyMap<string, string>): string | undefined {
  const [first] = items.values();
  if (first === undefined || items.size === 1) {
    return first;
  }
  const others = items.size - 1;
  return `${first} ${others} more ${others === 1 ? "item is" : "items are"} corrupt; gatehouse verify-data lists them.`;
}
