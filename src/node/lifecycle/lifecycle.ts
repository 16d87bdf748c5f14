/** Lifecycle of a node, from its start to its stop: dormancy, shutdown, and the hooks that a shutdown runs. */
import { setTimeout as sleep } from "node:timers/promises";
import { errorMessage } from "../../base/errors/error-message.js";

/** Time in milliseconds that requests in progress have to finish when the node stops. */
const drainMs = 10_000;

export function createLifecycle() {
  const controller = new AbortController();
  const signal: AbortSignal = controller.signal;
  let isDormant = false;
  let isStopAnnounced = false;
  let stopByMs = Infinity;
  return {
    /** Signal that aborts when `stop` is called. */
    signal,
    /** Returns true if the node knew no peers when it booted and has found none since. */
    isDormant: () => isDormant,
    setDormant(value: boolean): void {
      isDormant = value;
    },
    isStopping: () => signal.aborted,
    /** Returns true once the node is about to stop or stops: clients should use other nodes. */
    isStopAnnounced: () => isStopAnnounced || signal.aborted,
    /**
     * Announces that the node is about to stop, while it still serves everything. Resolves after `delayMs`, or earlier if
     * `hurry` aborts or the node stops.
     */
    async announceStop(delayMs: number, hurry?: AbortSignal): Promise<void> {
      isStopAnnounced = true;
      const ends = hurry === undefined ? signal : AbortSignal.any([signal, hurry]);
      await sleep(delayMs, undefined, { signal: ends }).catch(() => undefined);
    },
    /**
     * Starts the shutdown. Requests in progress have `graceMs` to finish. A repeated call can only shorten the time.
     */
    stop(graceMs = drainMs): void {
      stopByMs = Math.min(stopByMs, Date.now() + graceMs);
      controller.abort(new Error("The node was stopped."));
    },
    /**
     * Returns the milliseconds that listeners may still wait for requests in progress. Listeners close one after the
     * other and share this time.
     */
    drainLeftMs: () => Math.max(0, Math.min(drainMs, stopByMs - Date.now())),
  };
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
export function createShutdownHooks(onFailure: (name: string, error: unknown) => void) {
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

  /**
   * Adds a hook, with a name for the operator. A hook added during shutdown runs next; one added after shutdown runs
   * immediately.
   */
  function add(name: string, run: () => unknown): void {
    if (isOver) {
      void runHook({ name, run });
    } else {
      hooks.push({ name, run });
    }
  }

  /**
   * Runs all hooks one after the other, the latest first, even if some of them fail. All callers wait for the same run.
   *
   * @throws StopError that names the failed hooks, after all hooks have run.
   */
  const run = (): Promise<void> => (running ??= runAll());

  return { add, run };
}
