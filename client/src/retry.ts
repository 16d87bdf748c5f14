/** Doing something again that failed for the moment. */
import { isTransient, toGatehouseError } from "./errors.js";
import { GatehouseError } from "./gatehouse-error.js";

/** How often, and how long is waited between. */
export interface RetryPolicy {
  /** Most times that a call is made, the first one among them. */
  readonly attempts: number;
  /** The wait after the first failure, where the node does not say how long; twice as long each time. */
  readonly firstWaitMs: number;
  /** No wait is longer. Where the node asks for a longer one, the call fails with `retryAfterMs`. */
  readonly maxWaitMs: number;
}

/** What is done where nobody says otherwise. */
export const usualRetry: RetryPolicy = { attempts: 5, firstWaitMs: 250, maxWaitMs: 30_000 };

/** How a call is repeated. */
export interface Repetition {
  readonly retry: RetryPolicy;
  /** For all attempts and waits together; undefined for no limit. */
  readonly timeoutMs: number | undefined;
  /** Ends attempts and waits. */
  readonly signal: AbortSignal;
}

/**
 * Calls until it succeeds, fails for good, or has had its attempts or its time.
 *
 * @param attempt is given how much time is left.
 * @throws GatehouseError, that of the last attempt; what the signal was aborted with.
 */
export async function withRetry<T>(
  attempt: (leftMs: number | undefined) => Promise<T>,
  { retry, timeoutMs, signal }: Repetition,
): Promise<T> {
  const endsAtMs = timeoutMs === undefined ? Infinity : performance.now() + timeoutMs;
  for (let failures = 1; ; failures++) {
    const leftMs = endsAtMs - performance.now();
    try {
      return await attempt(leftMs === Infinity ? undefined : Math.max(1, Math.floor(leftMs)));
    } catch (thrown) {
      signal.throwIfAborted();
      const error = toGatehouseError(thrown);
      const askedMs = error.retryAfterMs ?? 0;
      const waitMs = waitAfter(failures, retry, error.retryAfterMs);
      const mayWait = askedMs <= retry.maxWaitMs && performance.now() + waitMs < endsAtMs;
      if (!isTransient(error) || failures >= retry.attempts || !mayWait) {
        throw error;
      }
      await sleep(waitMs, signal);
    }
  }
}

/**
 * How long to wait after so many failures. At random, so that clients which failed together do not come back together:
 * up to a quarter longer than the node asks for, or between the half and the whole of what doubles with each failure.
 */
export function waitAfter(failures: number, retry: RetryPolicy, askedMs: number | undefined): number {
  if (askedMs !== undefined && askedMs > 0) {
    return askedMs * (1 + Math.random() / 4);
  }
  return Math.min(retry.maxWaitMs, retry.firstWaitMs * 2 ** Math.min(failures - 1, 20)) * (0.5 + Math.random() / 2);
}

/** Waits. Rejects with what the signal is aborted with. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const wake = (): void => {
      signal.removeEventListener("abort", stop);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    signal.addEventListener("abort", stop, { once: true });
  });
}

/** What a closed client answers. */
export function closedError(): GatehouseError {
  return new GatehouseError("The client is closed.", "CLOSED");
}
