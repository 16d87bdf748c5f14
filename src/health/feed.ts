/** Publishes changes of the health snapshot. One poll serves all subscribers. */
import type { HealthSnapshot, TakeSnapshot } from "./snapshot.js";

/** Feed of health snapshots. */
export interface HealthFeed {
  /**
   * Yields the current snapshot, and the latest one after each change. Ends when the signal is aborted or the feed is
   * closed. A closed feed yields the last change before it ends.
   */
  watch(signal: AbortSignal): AsyncGenerator<HealthSnapshot, void>;
  close(): Promise<void>;
}

/** Poll interval while the feed has subscribers. Changes within one interval arrive as one snapshot. */
const defaultPollIntervalMs = 200;

/** Creates a feed. The feed polls only while it has subscribers. */
export function createHealthFeed(takeSnapshot: TakeSnapshot, pollIntervalMs = defaultPollIntervalMs): HealthFeed {
  let latest: HealthSnapshot | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  const waiting = new Map<object, () => void>();

  async function poll(): Promise<void> {
    const snapshot = await takeSnapshot();
    if (latest === undefined || !isSame(latest, snapshot)) {
      latest = snapshot;
      notifyAll();
    }
  }

  function notifyAll(): void {
    for (const notify of [...waiting.values()]) {
      notify();
    }
  }

  function schedulePoll(): void {
    timer = setTimeout(
      () => void poll().finally(() => (waiting.size > 0 ? schedulePoll() : (timer = undefined))),
      pollIntervalMs,
    );
  }

  /** Resolves at the next change, at the end of the feed, or when the signal of this watcher is aborted. */
  async function nextChange(watcher: object): Promise<void> {
    await new Promise<void>((resolve) => {
      waiting.set(watcher, resolve);
      if (timer === undefined) {
        schedulePoll();
      }
    });
    waiting.delete(watcher);
  }

  return {
    async *watch(signal) {
      const watcher = {};
      // One listener for the complete subscription: each listener added to a signal lives as long as the signal.
      const notify = (): void => waiting.get(watcher)?.();
      signal.addEventListener("abort", notify);
      try {
        await poll();
        let yielded: HealthSnapshot | undefined;
        while (!signal.aborted) {
          if (latest !== yielded && latest !== undefined) {
            yielded = latest;
            yield latest;
          } else if (isClosed) {
            return;
          } else {
            await nextChange(watcher);
          }
        }
      } finally {
        signal.removeEventListener("abort", notify);
      }
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      if (waiting.size > 0) {
        await poll();
        notifyAll();
      }
    },
  };
}

/** Returns true if the snapshots differ at most in ages, uptime and counters that always change. */
function isSame(a: HealthSnapshot, b: HealthSnapshot): boolean {
  return (
    a.status === b.status &&
    a.accepting === b.accepting &&
    a.mempoolSize === b.mempoolSize &&
    a.subsystems === b.subsystems &&
    a.boot === b.boot &&
    a.mainLoop?.exited === b.mainLoop?.exited &&
    a.errors?.uncaughtTotal === b.errors?.uncaughtTotal &&
    a.errors?.unhandledRejectionTotal === b.errors?.unhandledRejectionTotal
  );
}
