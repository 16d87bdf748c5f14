/** Tracks the work of a client, so that closing the client can end it. */
import { closedError } from "./retry.js";

/** Work of the client that can be aborted. */
export interface AbortableWork {
  /** Aborted when the caller aborts, or when the client is closed. */
  readonly signal: AbortSignal;
  /** Marks the work as ended. */
  readonly end: () => void;
}

/** Lifetime of a client, from its creation until it is closed. */
export interface ClientLifecycle {
  /**
   * Starts work that may end at any time, such as a stream. `close()` aborts the work and does not wait for it.
   *
   * @throws GatehouseError CLOSED if the client is closed; the reason of the caller's signal if that is aborted.
   */
  start(signal: AbortSignal | undefined): AbortableWork;
  /** Runs work that `close()` aborts and waits for. Rejects as {@link start} throws. */
  run<T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Aborts all work; resolves when the work of `run()` has ended. May be called again. */
  close(): Promise<void>;
}

/** Creates the lifetime of an open client. */
export function createClientLifecycle(): ClientLifecycle {
  const controllers = new Set<AbortController>();
  const running = new Set<Promise<unknown>>();
  let isClosed = false;

  function start(caller: AbortSignal | undefined): AbortableWork {
    if (isClosed) {
      throw closedError();
    }
    caller?.throwIfAborted();
    const controller = new AbortController();
    const end = (): void => {
      caller?.removeEventListener("abort", abort);
      controllers.delete(controller);
    };
    const abort = (): void => {
      // A stream whose caller has left its loop never reports its end.
      end();
      controller.abort(caller?.reason);
    };
    // Not AbortSignal.any: the signal of a caller may live long, and would retain the signals derived from it.
    caller?.addEventListener("abort", abort, { once: true });
    controllers.add(controller);
    return { signal: controller.signal, end };
  }

  return {
    start,
    async run(caller, work) {
      const { signal, end } = start(caller);
      const result = work(signal).finally(end);
      const settled = result.catch(() => undefined);
      running.add(settled);
      void settled.then(() => running.delete(settled));
      return await result;
    },
    async close() {
      isClosed = true;
      const error = closedError();
      for (const controller of controllers) {
        controller.abort(error);
      }
      await Promise.all(running);
    },
  };
}
