/** Wakes those who watch when there is something new. */
import { yieldToEventLoop } from "../base/async/yielding.js";

/** One who watches. */
export interface Subscription {
  /** Resolves when there may be something new, when the watch is aborted, and when it is all over. */
  sleep(): Promise<void>;
  /** He does not watch any more. */
  leave(): void;
}

/** All who watch. */
export interface Notifier {
  readonly isOver: boolean;
  enter(signal: AbortSignal): Subscription;
  /** There may be something new. */
  wake(): void;
  /** It is all over. */
  close(): void;
}

/** So many are woken in one turn of the event loop, however many sleep: each has work to do. */
const wokenAtOnce = 50;

/** Nobody watches yet. */
export function createNotifier(): Notifier {
  let isOver = false;
  let isWaking = false;
  const sleepers = new Map<object, () => void>();

  /** Those who fall asleep again meanwhile have seen what they are woken for. */
  async function wakeAll(): Promise<void> {
    isWaking = true;
    let woken = 0;
    for (const [watcher, wake] of [...sleepers]) {
      if (sleepers.get(watcher) === wake) {
        wake();
        if (++woken % wokenAtOnce === 0) {
          await yieldToEventLoop();
        }
      }
    }
    isWaking = false;
  }

  let isAgain = false;
  function wake(): void {
    if (isWaking) {
      isAgain = true;
      return;
    }
    void wakeAll().then(() => {
      if (isAgain) {
        isAgain = false;
        wake();
      }
    });
  }

  return {
    get isOver() {
      return isOver;
    },
    enter(signal) {
      const watcher = {};
      const wakeThis = (): void => sleepers.get(watcher)?.();
      // One for the whole watch: each that is added to a signal stays for as long as the signal does.
      signal.addEventListener("abort", wakeThis);
      return {
        async sleep() {
          if (!isOver && !signal.aborted) {
            await new Promise<void>((resolve) => sleepers.set(watcher, resolve));
            sleepers.delete(watcher);
          }
        },
        leave: () => signal.removeEventListener("abort", wakeThis),
      };
    },
    wake,
    close() {
      isOver = true;
      wake();
    },
  };
}
