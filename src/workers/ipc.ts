/**
 * IPC channel between a node and one of its processes. Each side calls functions of the other side by name, reads its
 * streams, and sends it notifications. Messages are cloned, so they contain plain values and bytes only.
 */
import { RpcError, type Reason, toRpcError } from "../rpc/errors.js";

export interface IpcEnd {
  /** Sends a message. Never throws; a message that cannot be sent is lost. */
  send(message: unknown): void;
  onMessage(listener: (message: unknown) => void): void;
}

/** Handlers of one side for the calls, streams and notifications of the other side. */
export interface IpcHandlers {
  readonly calls: Readonly<Record<string, (request: never, signal: AbortSignal) => unknown>>;
  /** Streams. An item is produced only when the other side requests it. */
  readonly streams: Readonly<Record<string, (request: never, signal: AbortSignal) => AsyncIterable<unknown>>>;
  readonly notifications: Readonly<Record<string, (payload: never) => void>>;
}

type Names<T> = keyof T & string;
type Payload<F> = F extends (payload: infer G, ...rest: never[]) => unknown ? G : never;
type Item<F> = F extends (...payload: never[]) => AsyncIterable<infer T> ? T : never;
type Outcome<F> = F extends (...payload: never[]) => infer R ? Awaited<R> : never;

/** Channel to the other side, which has the handlers `Their`. */
export interface IpcChannel<Their extends IpcHandlers> {
  /**
   * Calls a function of the other side.
   *
   * @throws RpcError as thrown there, or INTERNAL_ERROR for any other error; Error if the channel is closed.
   */
  call<N extends Names<Their["calls"]>>(
    name: N,
    request: Payload<Their["calls"][N]>,
    signal?: AbortSignal,
  ): Promise<Outcome<Their["calls"][N]>>;
  stream<N extends Names<Their["streams"]>>(
    name: N,
    request: Payload<Their["streams"][N]>,
    signal: AbortSignal,
  ): AsyncGenerator<Item<Their["streams"][N]>, void>;
  notify<N extends Names<Their["notifications"]>>(name: N, payload: Payload<Their["notifications"][N]>): void;
  /** Closes the channel because the other process is gone: ends all calls and streams in progress. */
  close(): void;
}

type Message =
  | { readonly kind: "call" | "stream"; readonly id: number; readonly name: string; readonly payload: unknown }
  | { readonly kind: "next" | "cancel"; readonly id: number }
  | { readonly kind: "notify"; readonly name: string; readonly payload: unknown }
  | { readonly kind: "response"; readonly id: number; readonly value: unknown; readonly isLast?: true }
  | { readonly kind: "failure"; readonly id: number; readonly failure: SentFailure };

type SentFailure = Pick<RpcError, "message" | "retryAfterS" | "headers"> & { readonly reason: Reason };

type Response = Pick<Message & { readonly kind: "response" }, "value" | "isLast">;

/**
 * Opens one end of a channel.
 *
 * @param handlers handlers for the other side.
 * @param onInternalError called with errors whose details the other side does not receive.
 */
export function openIpcChannel<Their extends IpcHandlers>(
  end: IpcEnd,
  handlers: IpcHandlers,
  onInternalError: (error: unknown) => void,
): IpcChannel<Their> {
  /** Calls that wait for a response. */
  const waiting = new Map<
    number,
    { readonly resolve: (response: Response) => void; readonly reject: (error: unknown) => void }
  >();
  const responder = createResponder(end, handlers, onInternalError);
  let lastId = 0;
  let isClosed = false;

  function request(id: number, message: Message): Promise<Response> {
    if (isClosed) {
      return Promise.reject(new Error("The other process is gone."));
    }
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      end.send(message);
    });
  }

  end.onMessage((received) => {
    const message = received as Message;
    if (message.kind === "response" || message.kind === "failure") {
      const caller = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.kind === "response") {
        caller?.resolve(message);
      } else {
        const { reason, message: text, retryAfterS, headers } = message.failure;
        caller?.reject(new RpcError(reason, text, retryAfterS, headers));
      }
    } else {
      responder.handle(message);
    }
  });

  /** Cancels a call when the signal aborts. Returns a function that stops listening. */
  function cancelOnAbort(id: number, signal: AbortSignal | undefined): () => void {
    const onAbort = (): void => end.send({ kind: "cancel", id } satisfies Message);
    signal?.addEventListener("abort", onAbort, { once: true });
    return () => signal?.removeEventListener("abort", onAbort);
  }

  return {
    async call(name, payload, signal) {
      const id = ++lastId;
      const stopListening = cancelOnAbort(id, signal);
      try {
        return (await request(id, { kind: "call", id, name, payload })).value as never;
      } finally {
        stopListening();
      }
    },
    async *stream(name, payload, signal) {
      const id = ++lastId;
      const stopListening = cancelOnAbort(id, signal);
      let isOver = false;
      try {
        let message: Message = { kind: "stream", id, name, payload };
        while (!signal.aborted) {
          const { value, isLast } = await request(id, message);
          if (isLast === true) {
            isOver = true;
            return;
          }
          yield value as never;
          message = { kind: "next", id };
        }
      } catch (error) {
        isOver = true;
        throw error;
      } finally {
        stopListening();
        if (!isOver) {
          end.send({ kind: "cancel", id } satisfies Message);
        }
      }
    },
    notify: (name, payload) => end.send({ kind: "notify", name, payload } satisfies Message),
    close() {
      isClosed = true;
      responder.cancelAll();
      for (const { reject } of waiting.values()) {
        reject(new Error("The other process is gone."));
      }
      waiting.clear();
    },
  };
}

/** Call or stream of the other side that is in progress. */
interface RunningCall {
  readonly controller: AbortController;
  /** Iterator of a stream; undefined for a call. */
  readonly items?: AsyncIterator<unknown>;
}

function createResponder(end: IpcEnd, handlers: IpcHandlers, onInternalError: (error: unknown) => void) {
  const running = new Map<number, RunningCall>();

  const respond = (id: number, value: unknown, isLast?: true): void =>
    end.send({ kind: "response", id, value, ...(isLast && { isLast }) } satisfies Message);

  function fail(id: number, error: unknown): void {
    const failure = toRpcError(error);
    if (failure !== error) {
      onInternalError(error);
    }
    const { reason, message, retryAfterS, headers } = failure;
    end.send({ kind: "failure", id, failure: { reason, message, retryAfterS, headers } } satisfies Message);
  }

  async function handleCall(id: number, name: string, payload: unknown): Promise<void> {
    const controller = new AbortController();
    running.set(id, { controller });
    try {
      respond(id, await handlers.calls[name]!(payload as never, controller.signal));
    } catch (error) {
      fail(id, error);
    } finally {
      running.delete(id);
    }
  }

  async function handleNext(id: number): Promise<void> {
    try {
      const { value, done } = (await running.get(id)!.items!.next()) as IteratorResult<unknown, unknown>;
      if (done === true) {
        running.delete(id);
        respond(id, undefined, true);
      } else {
        respond(id, value);
      }
    } catch (error) {
      running.delete(id);
      fail(id, error);
    }
  }

  function cancel(id: number): void {
    const call = running.get(id);
    running.delete(id);
    call?.controller.abort();
    // `return` of a generator waits for a pending `next`, which ends by the signal.
    call?.items?.return?.().catch(() => undefined);
  }

  return {
    handle(message: Exclude<Message, { kind: "response" | "failure" }>): void {
      if (message.kind === "notify") {
        handlers.notifications[message.name]!(message.payload as never);
      } else if (message.kind === "call") {
        void handleCall(message.id, message.name, message.payload);
      } else if (message.kind === "cancel") {
        cancel(message.id);
      } else {
        if (message.kind === "stream") {
          const controller = new AbortController();
          const items = handlers.streams[message.name]!(message.payload as never, controller.signal);
          running.set(message.id, { controller, items: items[Symbol.asyncIterator]() });
        }
        if (running.has(message.id)) {
          void handleNext(message.id);
        }
      }
    },
    cancelAll: () => [...running.keys()].forEach(cancel),
  };
}
