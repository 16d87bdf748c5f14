/** Shutdown hooks of a node. */
import { errorMessage } from "../../base/errors/error-message.js";

/**
 * Adds a shutdown hook, with a name for the operator. A hook added during shutdown runs next; one added after shutdown
 * runs immediately.
 */
export type OnShutdown = (name: string, run: () => unknown) => void;

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

/** Error about parts of a node that could not be stopped. The message names them. */
export class StopError extends Error {
  override readonly name = "StopError";
}

/**
 * Creates an empty list of hooks.
 *
 * @param onFailure called with the name and the error of each hook that fails.
 */
export function createShutdownHooks(onFailure: (name: string, error: unknown) => void): ShutdownHooks {
  const hooks: { readonly name: string; readonly run: () => unknown }[] = [];
  const failures: string[] = [];
  let running: Promise<void> | undefined;
  let isOver = false;

  async function runHook({ name, run }: (typeof hooks)[number]): Promise<void> {
    try {
      await run();
    } catch (error) {
      failures.push(`${name} (${errorMessage(error)})`);
      onFailure(name, error);
    }
  }

  async function runAll(): Promise<void> {
    // A hook added while another hook runs is last in the list, so it runs next.
    for (let next = hooks.pop(); next !== undefined; next = hooks.pop()) {
      await runHook(next);
    }
    isOver = true;
    if (failures.length > 0) {
      throw new StopError(`These parts of the node could not be stopped: ${failures.join(", ")}.`);
    }
  }

  return {
    add(name, run) {
      if (isOver) {
        void runHook({ name, run });
      } else {
        hooks.push({ name, run });
      }
    },
    run: () => (running ??= runAll()),
  };
}
