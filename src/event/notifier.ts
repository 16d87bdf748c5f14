/** Notifier that wakes subscribers when there may be new events. */
import { yieldToEventLoop } from "../base/async/yielding.js";

/** Subscription of one subscriber. */
export interface Subscription {
  /** Resolves when there may be new events, when the subscriber's signal is aborted, or when the notifier is closed. */
  wait(): Promise<void>;
  unsubscribe(): void;
}

/** Notifier of all subscriptions. */
export interface Notifier {
  readonly isClosed: boolean;
  subscribe(signal: AbortSignal): Subscription;
  /** Wakes all subscribers that wait. */
  notify(): void;
  /** Wakes all subscribers that wait. Later waits resolve immediately. */
  close(): void;
}

/** Number of subscribers woken before yielding to the event loop, because each of them then has work to do. */
const wokenAtOnce = 50;

/** Creates a notifier without subscribers. */
export function createNotifier(): Notifier {
  let isClosed = false;
  let isWaking = false;
  /** True if `notify` was called while subscribers were being woken. */
  let isNotified = false;
  /** Functions that end the current wait, by subscriber. */
  const waits = new Map<object, () => void>();

  /**
   * Wakes all waiting subscribers. Skips those that woke and waited again meanwhile, because they have seen the change.
   */
  async function wakeAll(): Promise<void> {
    isWaking = true;
    let woken = 0;
    for (const [subscriber, wake] of [...waits]) {
      if (waits.get(subscriber) === wake) {
        wake();
        if (++woken % wokenAtOnce === 0) {
          await yieldToEventLoop();
        }
      }
    }
    isWaking = false;
  }

  function notify(): void {
    if (isWaking) {
      isNotified = true;
      return;
    }
    void wakeAll().then(() => {
      if (isNotified) {
        isNotified = false;
        notify();
      }
    });
  }

  return {
    get isClosed() {
      return isClosed;
    },
    subscribe(signal) {
      const subscriber = {};
      const wake = (): void => waits.get(subscriber)?.();
      // One listener for the entire subscription: an AbortSignal retains every listener that is added.
      signal.addEventListener("abort", wake);
      return {
        async wait() {
          if (!isClosed && !signal.aborted) {
            await new Promise<void>((resolve) => waits.set(subscriber, resolve));
            waits.delete(subscriber);
          }
        },
        unsubscribe: () => signal.removeEventListener("abort", wake),
      };
    },
    notify,
    close() {
      isClosed = true;
      notify();
    },
  };
}
