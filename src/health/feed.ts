/** Follows the health snapshot for whoever wants to hear of changes; one look for all of them. */
import type { HealthSnapshot, TakeSnapshot } from "./snapshot.js";

/** Snapshots as they change. */
export interface HealthFeed {
  /**
   * The snapshot now, and after each change the newest one. Ends when the signal is aborted or the feed is closed; a
   * closed feed gives the last change before it ends.
   */
  watch(signal: AbortSignal): AsyncGenerator<HealthSnapshot, void>;
  close(): Promise<void>;
}

/** How often it looks while somebody watches: changes within this time come as one. */
const defaultLookEveryMs = 200;

/** Builds a feed; it does nothing while nobody watches. */
export function createHealthFeed(takeSnapshot: TakeSnapshot, lookEveryMs = defaultLookEveryMs): HealthFeed {
  let latest: HealthSnapshot | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  const sleepers = new Map<object, () => void>();

  async function look(): Promise<void> {
    const taken = await takeSnapshot();
    if (latest === undefined || !isSame(latest, taken)) {
      latest = taken;
      wakeAll();
    }
  }

  function wakeAll(): void {
    for (const wake of [...sleepers.values()]) {
      wake();
    }
  }

  function lookAgain(): void {
    timer = setTimeout(
      () => void look().finally(() => (sleepers.size > 0 ? lookAgain() : (timer = undefined))),
      lookEveryMs,
    );
  }

  /** Resolves at the next change, at the end of the feed, or when somebody wakes the watcher. */
  async function change(watcher: object): Promise<void> {
    await new Promise<void>((resolve) => {
      sleepers.set(watcher, resolve);
      if (timer === undefined) {
        lookAgain();
      }
    });
    sleepers.delete(watcher);
  }

  return {
    async *watch(signal) {
      const watcher = {};
      // One for the whole watch: each that is added to a signal stays for as long as the signal does.
      const wake = (): void => sleepers.get(watcher)?.();
      signal.addEventListener("abort", wake);
      try {
        await look();
        let seen: HealthSnapshot | undefined;
        while (!signal.aborted) {
          if (latest !== seen && latest !== undefined) {
            seen = latest;
            yield latest;
          } else if (isClosed) {
            return;
          } else {
            await change(watcher);
          }
        }
      } finally {
        signal.removeEventListener("abort", wake);
      }
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      if (sleepers.size > 0) {
        await look();
        wakeAll();
      }
    },
  };
}

/** Whether nothing but ages, uptime and counters that always move is different. */
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
