/** What the database holds and what does not fit to what was stored: how it is found, and who hears of it. */
import { isDatabaseCorruption, markDatabaseError } from "./database-error-kind.js";

/** Something that was read is not what was stored. The message is a sentence for the operator, and for no caller. */
export class CorruptionError extends Error {
  override readonly name = "DamageError";

  constructor(message: string) {
    super(message);
    markDatabaseError(this, "damaged");
  }
}

/** Remembers what was found damaged, until it is found right. */
export interface CorruptionMonitor {
  /**
   * Reads something. When what is read does not fit, that is known from then on; when the same is read again and is
   * right, it is forgotten. While something is damaged, nothing is said not to be there: what led there may be it.
   *
   * @param what names it: what is read under one name is one thing.
   * @param mayLack whether something may be missing in what was found; where it is left out, when nothing was found.
   */
  read<T>(what: string, read: () => Promise<T>, mayLack?: (found: T) => boolean): Promise<T>;
  /** Runs work that reads and writes many things: that it succeeds says nothing of what did not fit before. */
  run<T>(what: string, work: () => Promise<T>): Promise<T>;
  /** Something was found damaged; or found right where there is no sentence. */
  found(what: string, sentence: string | undefined): void;
  /** An error that ended a request: if it tells of damage that nobody has told of, that is known from then on. */
  notice(error: unknown): void;
  /** Sentences by what they are about. */
  known(): ReadonlyMap<string, string>;
}

/**
 * Builds the watch.
 *
 * @param onChange hears of what is told of all of it in one sentence; undefined when nothing is damaged any more.
 */
export function createCorruptionMonitor(onChange: (sentence: string | undefined) => void): CorruptionMonitor {
  const damages = new Map<string, string>();
  let told: string | undefined;
  const seen = new WeakSet<object>();

  function tell(): void {
    const sentence = summarize(damages);
    if (sentence !== told) {
      told = sentence;
      onChange(sentence);
    }
  }

  function found(what: string, sentence: string | undefined): void {
    if (sentence === undefined ? damages.delete(what) : damages.get(what) !== sentence) {
      if (sentence !== undefined) {
        damages.set(what, sentence);
      }
      tell();
    }
  }

  async function run<T>(what: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (isDatabaseCorruption(error)) {
        seen.add(error as object);
        found(what, messageFor(error, what));
      }
      throw error;
    }
  }

  /** Other things are damaged, so that what was looked for may be there all the same. */
  function notSure(): CorruptionError {
    const error = new CorruptionError("While something is damaged, nothing is said not to be there.");
    seen.add(error);
    return error;
  }

  return {
    async read(what, read, mayLack = (result) => result === undefined) {
      const result = await run(what, read);
      if (damages.size > 0) {
        found(what, undefined);
        if (damages.size > 0 && mayLack(result)) {
          throw notSure();
        }
      }
      return result;
    },
    run,
    found,
    notice(error) {
      if (isDatabaseCorruption(error) && !seen.has(error as object)) {
        found(`an answer: ${messageFor(error, "an answer")}`, messageFor(error, "something that it was asked for"));
      }
    },
    known: () => damages,
  };
}

/** What an error of damage says, for the operator. */
export function messageFor(error: unknown, what: string): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return error instanceof CorruptionError
    ? message
    : `The database says that it is damaged (${code ?? message}): ${what}.`;
}

function summarize(damages: ReadonlyMap<string, string>): string | undefined {
  const [first] = damages.values();
  if (first === undefined || damages.size === 1) {
    return first;
  }
  const others = damages.size - 1;
  return `${first} ${others === 1 ? "One more thing does" : `${others} more things do`} not fit; gatehouse verify-data names them.`;
}
