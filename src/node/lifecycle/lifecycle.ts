/** Lifecycle of a node, from its start to its stop. */

/** Dormancy and shutdown state of a node. */
export interface Lifecycle {
  /** Returns true if the node knew no peers when it booted and has found none since. */
  readonly isDormant: () => boolean;
  setDormant(isDormant: boolean): void;
  /** Returns true once `stop` was called. */
  readonly isStopping: () => boolean;
  /**
   * Starts the shutdown. Requests in progress have `graceMs` to finish. Default: 10,000 ms. A repeated call can only
   * shorten the time.
   */
  stop(graceMs?: number): void;
  /**
   * Returns the milliseconds that listeners may still wait for requests in progress. Listeners close one after the
   * other and share this time.
   */
  drainLeftMs(): number;
  /** Signal that aborts when `stop` is called. */
  readonly signal: AbortSignal;
}

/** Time in milliseconds that requests in progress have to finish when the node stops. */
const drainMs = 10_000;

/** Creates the lifecycle of a node that starts. */
export function createLifecycle(): Lifecycle {
  const controller = new AbortController();
  let isDormant = false;
  let stopByMs = Infinity;
  return {
    isDormant: () => isDormant,
    setDormant(value) {
      isDormant = value;
    },
    isStopping: () => controller.signal.aborted,
    stop(graceMs = drainMs) {
      stopByMs = Math.min(stopByMs, Date.now() + graceMs);
      controller.abort(new Error("The node was stopped."));
    },
    drainLeftMs: () => Math.max(0, Math.min(drainMs, stopByMs - Date.now())),
    signal: controller.signal,
  };
}
