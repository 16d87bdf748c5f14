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

/** Records corrupt items until a later read finds them intact. */
export interface CorruptionMonitor {
  /**
   * Reads an item. Records the item if the read throws a corruption error, and clears it when a later read succeeds.
   * While any item is corrupt, the monitor reports nothing as missing, because an index that leads to it may be corrupt.
   *
   * @param subject name of the item; reads under one name must read the same item.
   * @param mayLack returns true if the result may lack something. Default: true if the result is undefined.
   * @throws CorruptionError if the result may lack something while another item is corrupt.
   */
  read<T>(subject: string, read: () => Promise<T>, mayLack?: (result: T) => boolean): Promise<T>;
  /** Runs work that reads and writes many items. Records corruption, but success clears no record. */
  run<T>(subject: string, work: () => Promise<T>): Promise<T>;
  /**
   * Records that an item is corrupt, with a message for the operator; clears the record if the message is undefined.
   */
  record(subject: string, message: string | undefined): void;
  /** Records an error that ended a request, if it means corruption that is not recorded yet. */
  recordRequestError(error: unknown): void;
  /** Returns the messages of the corrupt items, by item. */
  corruptItems(): ReadonlyMap<string, string>;
}

/**
 * Creates the monitor.
 *
 * @param onChange called with one summary of the corrupt items when it changes; undefined when none is left.
 */
export function createCorruptionMonitor(onChange: (message: string | undefined) => void): CorruptionMonitor {
  const items = new Map<string, string>();
  let reported: string | undefined;
  const recordedErrors = new WeakSet<object>();

  function report(): void {
    const message = summarize(items);
    if (message !== reported) {
      reported = message;
      onChange(message);
    }
  }

  function record(subject: string, message: string | undefined): void {
    if (message === undefined ? items.delete(subject) : items.get(subject) !== message) {
      if (message !== undefined) {
        items.set(subject, message);
      }
      report();
    }
  }

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

  /** Returns the error for a missing item. Other items are corrupt, so it may exist all the same. */
  function createUncertainError(): CorruptionError {
    const error = new CorruptionError("While something is damaged, nothing is said not to be there.");
    recordedErrors.add(error);
    return error;
  }

  return {
    async read(subject, read, mayLack = (result) => result === undefined) {
      const result = await run(subject, read);
      if (items.size > 0) {
        record(subject, undefined);
        if (items.size > 0 && mayLack(result)) {
          throw createUncertainError();
        }
      }
      return result;
    },
    run,
    record,
    recordRequestError(error) {
      if (isDatabaseCorruption(error) && !recordedErrors.has(error as object)) {
        record(`an answer: ${messageFor(error, "an answer")}`, messageFor(error, "something that it was asked for"));
      }
    },
    corruptItems: () => items,
  };
}

/** Returns the message of a corruption error, for the operator. */
export function messageFor(error: unknown, subject: string): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return error instanceof CorruptionError
    ? message
    : `The database says that it is damaged (${code ?? message}): ${subject}.`;
}

function summarize(items: ReadonlyMap<string, string>): string | undefined {
  const [first] = items.values();
  if (first === undefined || items.size === 1) {
    return first;
  }
  const others = items.size - 1;
  return `${first} ${others === 1 ? "One more thing does" : `${others} more things do`} not fit; gatehouse verify-data names them.`;
}
