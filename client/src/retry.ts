/** Retries of calls that failed with a transient error. */
import { isTransient, toGatehouseError } from "./errors.js";
import { GatehouseError } from "./gatehouse-error.js";

/** Number of attempts, and waits between them. */
export interface RetryPolicy {
  /** Limit on attempts, including the first. */
  readonly attempts: number;
  /** Wait in milliseconds after the first error, if the node sends none; doubles each time. */
  readonly firstWaitMs: number;
  /** Limit on a wait in milliseconds. If the node requests a longer wait, the call fails with `retryAfterMs`. */
  readonly maxWaitMs: number;
}

/** Default retry policy. */
export const defaultRetry: RetryPolicy = { attempts: 5, firstWaitMs: 250, maxWaitMs: 30_000 };

/** Settings of a call with retries. */
export interface RetrySettings {
  readonly retry: RetryPolicy;
  /** Time limit in milliseconds for all attempts and waits together; undefined for no limit. */
  readonly timeoutMs: number | undefined;
  /** Aborts attempts and waits. */
  readonly signal: AbortSignal;
}

/**
 * Repeats a call until it succeeds, fails permanently, or reaches the limit on attempts or time.
 *
 * @param attempt receives the remaining time in milliseconds.
 * @throws GatehouseError of the last attempt; the reason of the signal if it is aborted.
 */
export async function withRetry<T>(
  attempt: (leftMs: number | undefined) => Promise<T>,
  { retry, timeoutMs, signal }: RetrySettings,
): Promise<T> {
  const endsAtMs = timeoutMs === undefined ? Infinity : performance.now() + timeoutMs;
  for (let failures = 1; ; failures++) {
    const leftMs = endsAtMs - performance.now();
    try {
      return await attempt(leftMs === Infinity ? undefined : Math.max(1, Math.floor(leftMs)));
    } catch (thrown) {
      signal.throwIfAborted();
      const error = toGatehouseError(thrown);
      const requestedMs = error.retryAfterMs ?? 0;
      const waitMs = waitAfter(failures, retry, error.retryAfterMs);
      const mayWait = requestedMs <= retry.maxWaitMs && performance.now() + waitMs < endsAtMs;
      if (!isTransient(error) || failures >= retry.attempts || !mayWait) {
        throw error;
      }
      await sleep(waitMs, signal);
    }
  }
}

/**
 * Returns the wait after this many errors. It is random, so that clients that failed together do not return together:
 * up to a quarter longer than the node requests, or 50 to 100 % of a time that doubles with each error.
 */
export function waitAfter(failures: number, retry: RetryPolicy, requestedMs: number | undefined): number {
  if (requestedMs !== undefined && requestedMs > 0) {
    return requestedMs * (1 + Math.random() / 4);
  }
  return Math.min(retry.maxWaitMs, retry.firstWaitMs * 2 ** Math.min(failures - 1, 20)) * (0.5 + Math.random() / 2);
}

/** Limit on the delay of a timer in milliseconds, about 24 days. A longer one would end at once. */
export const maxTimerMs = 2 ** 31 - 1;

/** Waits, at most {@link maxTimerMs}. Rejects with the reason of the signal if it is aborted. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const finish = (): void => {
      signal.removeEventListener("abort", cancel);
      resolve();
    };
    const timer = setTimeout(finish, Math.min(ms, maxTimerMs));
    const cancel = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    signal.addEventListener("abort", cancel, { once: true });
  });
}

/** Creates the error of a closed client. */
export function closedError(): GatehouseError {
  return new GatehouseError("The client is closed.", "CLOSED");
}
