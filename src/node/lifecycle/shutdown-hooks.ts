/** What has to be ended when a node stops, and the ending of it. */
import { errorMessage } from "../../base/errors/error-message.js";

/** Takes what has to be ended, with a name for the operator. What is added while all is being ended is ended at once. */
export type OnShutdown = (name: string, end: () => unknown) => void;

/** The list of what has to be ended. */
export interface ShutdownHooks {
  readonly add: OnShutdown;
  /**
   * Ends everything, the newest first, one after the other, whatever one of them does. All callers wait for the same
   * end.
   *
   * @throws StopError that names what could not be ended, after all the rest was.
   */
  run(): Promise<void>;
}

/** Parts of a node that could not be ended; the message is one sentence that names them. */
export class StopError extends Error {
  override readonly name = "StopError";
}

/** An empty list. */
export function createShutdownHooks(onFailure: (name: string, error: unknown) => void): ShutdownHooks {
  const ends: { readonly name: string; readonly end: () => unknown }[] = [];
  const failures: string[] = [];
  let running: Promise<void> | undefined;
  let isOver = false;

  async function tryToEnd({ name, end }: (typeof ends)[number]): Promise<void> {
    try {
      await end();
    } catch (error) {
      failures.push(`${name} (${errorMessage(error)})`);
      onFailure(name, error);
    }
  }

  async function endAll(): Promise<void> {
    // What is begun by a part that is just being ended comes last, and goes first.
    for (let next = ends.pop(); next !== undefined; next = ends.pop()) {
      await tryToEnd(next);
    }
    isOver = true;
    if (failures.length > 0) {
      throw new StopError(`These parts of the node could not be stopped: ${failures.join(", ")}.`);
    }
  }

  return {
    add(name, end) {
      if (isOver) {
        void tryToEnd({ name, end });
      } else {
        ends.push({ name, end });
      }
    },
    run: () => (running ??= endAll()),
  };
}
