/** Shutdown hooks of a node. */
import { errorMessage } from "../../base/errors/error-message.js";

/**
 * Adds a shutdown hook, with a name for the operator. A hook added during shutdown runs next; one added after shutdown
 * runs immediately.
 */
export type OnShutdown = (name: string, end: () => unknown) => void;

/** List of shutdown hooks. */
export interface ShutdownHooks {
  readonly add: OnShutdown;
  /**
   * Runs all hooks one after the other, the latest first, even if some of them fail. All callers wait for the same run.
   *
   * @throws StopError that names the failed hooks, after all hooks have run.
   */
  run(): Promise<void>;
}

/** Error about parts of a node that could not be stopped. The message is one sentence that names them. */
export class StopError extends Error {
  override readonly name = "StopError";
}

/**
 * Creates an empty list of hooks.
 *
 * @param onFailure called with the name and the error of each hook that fails.
 */
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
    // A hook added while another hook runs is last in the list, so it runs next.
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
