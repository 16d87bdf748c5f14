/** What a client has under way, so that it can be closed. */
import { closedError } from "./retry.js";

/** What a piece of work may go on until. */
export interface Span {
  /** Aborted when the caller aborts, or when the client is closed. */
  readonly signal: AbortSignal;
  /** It has ended. */
  readonly end: () => void;
}

/** From the making of a client to its closing. */
export interface ClientLifecycle {
  /**
   * Work begins that may end when somebody else pleases, such as a stream; closing does not wait for it.
   *
   * @throws GatehouseError CLOSED; what the caller's signal was aborted with.
   */
  begin(signal: AbortSignal | undefined): Span;
  /** Does work that closing ends, and waits for. Rejects as {@link begin} throws. */
  run<T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Ends all of it; resolves when it has ended. Again is no error. */
  close(): Promise<void>;
}

/** Begins one. */
export function createClientLifecycle(): ClientLifecycle {
  const controllers = new Set<AbortController>();
  const running = new Set<Promise<unknown>>();
  let isClosed = false;

  function begin(caller: AbortSignal | undefined): Span {
    if (isClosed) {
      throw closedError();
    }
    caller?.throwIfAborted();
    const controller = new AbortController();
    const abort = (): void => controller.abort(caller?.reason);
    // Not AbortSignal.any: callers' signals live long, and would hold what was made of them.
    caller?.addEventListener("abort", abort, { once: true });
    controllers.add(controller);
    return {
      signal: controller.signal,
      end: () => {
        caller?.removeEventListener("abort", abort);
        controllers.delete(controller);
      },
    };
  }

  return {
    begin,
    async run(caller, work) {
      const { signal, end } = begin(caller);
      const ended = work(signal).finally(end);
      const settled = ended.catch(() => undefined);
      running.add(settled);
      void settled.then(() => running.delete(settled));
      return await ended;
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
