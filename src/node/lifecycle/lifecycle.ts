/** Where a node is between its start and its end. */

/** The states that its parts ask for. */
export interface Lifecycle {
  /** It knew no peers when it booted, and has found none since. */
  readonly isDormant: () => boolean;
  setDormant(isDormant: boolean): void;
  /** It was told to stop. */
  readonly isStopping: () => boolean;
  /** What is under way has so long, ten seconds when left out; from now on the node is stopping. */
  stop(graceMs?: number): void;
  /** How long listeners may still wait for what is under way: they end one after the other and share the time. */
  drainLeftMs(): number;
  /** Aborted when it is told to stop. */
  readonly signal: AbortSignal;
}

/** How long requests under way may take to finish when the node stops. */
const drainMs = 10_000;

/** The life of a node that begins. */
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
      controller.abort(new Error("The node was told to stop."));
    },
    drainLeftMs: () => Math.max(0, Math.min(drainMs, stopByMs - Date.now())),
    signal: controller.signal,
  };
}
