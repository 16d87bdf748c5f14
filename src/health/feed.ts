/** Publishes changes of the health snapshot. One poll serves all subscribers. */
import { EventEmitter, once } from "node:events";
import type { HealthSnapshot, TakeSnapshot } from "./snapshot.js";

/** Poll interval while the feed has subscribers. Changes within one interval arrive as one snapshot. */
const defaultPollIntervalMs = 200;

export type HealthFeed = ReturnType<typeof createHealthFeed>;

/**
 * Creates a feed. The feed polls only while it has subscribers.
 *
 * @param isReady returns the readiness, a change of which counts as a change of the snapshot.
 */
export function createHealthFeed(
  takeSnapshot: TakeSnapshot,
  pollIntervalMs = defaultPollIntervalMs,
  isReady: (snapshot: HealthSnapshot) => boolean = () => true,
) {
  const changes = new EventEmitter().setMaxListeners(0);
  let latest: HealthSnapshot | undefined;
  let wasReady = false;
  /** Number of changes, by which a subscriber knows that there is a newer snapshot. */
  let changeCount = 0;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  async function poll(): Promise<void> {
    const snapshot = await takeSnapshot();
    const isNowReady = isReady(snapshot);
    const isChanged = latest === undefined || isNowReady !== wasReady || !isSame(latest, snapshot);
    wasReady = isNowReady;
    latest = snapshot;
    if (isChanged) {
      changeCount++;
      changes.emit("change");
    }
  }

  function schedulePoll(): void {
    timer ??= setTimeout(() => {
      void poll().finally(() => {
        timer = undefined;
        if (changes.listenerCount("change") > 0) {
          schedulePoll();
        }
      });
    }, pollIntervalMs);
  }

  return {
    /**
     * Yields the current snapshot, and the latest one after each change. Ends when the signal is aborted or the feed is
     * closed. A closed feed yields the last change before it ends.
     */
    async *watch(signal: AbortSignal): AsyncGenerator<HealthSnapshot, void> {
      await poll();
      let yieldedCount = 0;
      while (!signal.aborted) {
        if (changeCount !== yieldedCount && latest !== undefined) {
          yieldedCount = changeCount;
          yield latest;
        } else if (isClosed) {
          return;
        } else {
          schedulePoll();
          await once(changes, "change", { signal }).catch(() => undefined);
        }
      }
    },
    async close(): Promise<void> {
      isClosed = true;
      clearTimeout(timer);
      if (changes.listenerCount("change") > 0) {
        await poll();
        changes.emit("change");
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
    a.errors === b.errors
  );
}
