/** Notifier that wakes subscribers when there may be new events. */
import { yieldToEventLoop } from "../base/async/yielding.js";

/** Subscription of one watcher. */
export interface Subscription {
  /** Resolves when there may be new events, when the watcher's signal is aborted, or when the notifier is closed. */
  sleep(): Promise<void>;
  /** Ends the subscription. */
  leave(): void;
}

/** Notifier of all subscriptions. */
export interface Notifier {
  readonly isOver: boolean;
  enter(signal: AbortSignal): Subscription;
  /** Wakes all subscribers. */
  wake(): void;
  /** Wakes all subscribers and ends all waits from now on. */
  close(): void;
}

/** Number of subscribers woken before yielding to the event loop, because each of them then has work to do. */
const wokenAtOnce = 50;

/** Creates a notifier without subscribers. */
export function createNotifier(): Notifier {
  let isOver = false;
  let isWaking = false;
  const sleepers = new Map<object, () => void>();

  /**
   * Wakes all waiting subscribers. Skips those that woke and waited again meanwhile, because they have seen the change.
   */
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
      // One listener for the entire subscription: an AbortSignal retains every listener that is added.
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
