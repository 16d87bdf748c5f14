/**
 * IPC channel between a node and one of its processes. Each side calls functions of the other side by name, reads its
 * streams, and sends it notifications. Messages are cloned, so they contain plain values and bytes only.
 */
import { RpcError, type Reason, toRpcError } from "../rpc/errors.js";

/** Message transport at one end of a channel. */
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
  readonly tells: Readonly<Record<string, (told: never) => void>>;
}

type Names<T> = keyof T & string;
type Given<F> = F extends (given: infer G, ...rest: never[]) => unknown ? G : never;
type Item<F> = F extends (...given: never[]) => AsyncIterable<infer T> ? T : never;
type Outcome<F> = F extends (...given: never[]) => infer R ? Awaited<R> : never;

/** Channel to the other side, which has the handlers `Their`. */
export interface IpcChannel<Their extends IpcHandlers> {
  /**
   * Calls a function of the other side.
   *
   * @throws RpcError as thrown there, or INTERNAL_ERROR for any other error; Error if the channel is closed.
   */
  call<N extends Names<Their["calls"]>>(
    name: N,
    request: Given<Their["calls"][N]>,
    signal?: AbortSignal,
  ): Promise<Outcome<Their["calls"][N]>>;
  stream<N extends Names<Their["streams"]>>(
    name: N,
    request: Given<Their["streams"][N]>,
    signal: AbortSignal,
  ): AsyncGenerator<Item<Their["streams"][N]>, void>;
  tell<N extends Names<Their["tells"]>>(name: N, told: Given<Their["tells"][N]>): void;
  /** Closes the channel because the other process is gone: ends all calls and streams in progress. */
  cut(): void;
}

type Message =
  | { readonly kind: "call" | "stream"; readonly id: number; readonly name: string; readonly given: unknown }
  | { readonly kind: "next" | "leave"; readonly id: number }
  | { readonly kind: "tell"; readonly name: string; readonly given: unknown }
  | { readonly kind: "answer"; readonly id: number; readonly value: unknown; readonly isLast?: true }
  | { readonly kind: "failure"; readonly id: number; readonly failure: SentFailure };

type SentFailure = Pick<RpcError, "message" | "retryAfterS" | "headers"> & { readonly reason: Reason };

/** Call that waits for a response. */
interface Waiting {
  readonly resolve: (answer: { readonly value: unknown; readonly isLast?: true }) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Opens one end of a channel.
 *
 * @param own handlers for the other side.
 * @param onInternalError called with errors whose details the other side does not receive.
 */
export function openIpcChannel<Their extends IpcHandlers>(
  end: IpcEnd,
  own: IpcHandlers,
  onInternalError: (error: unknown) => void,
): IpcChannel<Their> {
  const waiting = new Map<number, Waiting>();
  const answering = createAnswering(end, own, onInternalError);
  let lastId = 0;
  let isCut = false;

  function ask(id: number, message: Message): Promise<{ readonly value: unknown; readonly isLast?: true }> {
    if (isCut) {
      return Promise.reject(new Error("The other process is gone."));
    }
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      end.send(message);
    });
  }

  end.onMessage((received) => {
    const message = received as Message;
    if (message.kind === "answer" || message.kind === "failure") {
      const asker = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.kind === "answer") {
        asker?.resolve(message);
      } else {
        asker?.reject(receive(message.failure));
      }
    } else {
      answering.take(message);
    }
  });

  const leave = (id: number): void => end.send({ kind: "leave", id } satisfies Message);

  return {
    async call(name, given, signal) {
      const id = ++lastId;
      const onAbort = (): void => leave(id);
      signal?.addEventListener("abort", onAbort, { once: true });
      try {
        return (await ask(id, { kind: "call", id, name, given })).value as never;
      } finally {
        signal?.removeEventListener("abort", onAbort);
      }
    },
    async *stream(name, given, signal) {
      const id = ++lastId;
      const onAbort = (): void => leave(id);
      signal.addEventListener("abort", onAbort, { once: true });
      let isOver = false;
      try {
        let message: Message = { kind: "stream", id, name, given };
        while (!signal.aborted) {
          const { value, isLast } = await ask(id, message);
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
        signal.removeEventListener("abort", onAbort);
        if (!isOver) {
          leave(id);
        }
      }
    },
    tell: (name, given) => end.send({ kind: "tell", name, given } satisfies Message),
    cut() {
      isCut = true;
      answering.leaveAll();
      for (const { reject } of waiting.values()) {
        reject(new Error("The other process is gone."));
      }
      waiting.clear();
    },
  };
}

/** Call or stream of the other side that is in progress. */
interface Asked {
  readonly controller: AbortController;
  /** Iterator of a stream; undefined for a call. */
  readonly items?: AsyncIterator<unknown>;
}

function createAnswering(end: IpcEnd, own: IpcHandlers, onInternalError: (error: unknown) => void) {
  const asked = new Map<number, Asked>();

  const answer = (id: number, value: unknown, isLast?: true): void =>
    end.send({ kind: "answer", id, value, ...(isLast && { isLast }) } satisfies Message);

  function fail(id: number, error: unknown): void {
    const failure = toRpcError(error);
    if (failure !== error) {
      onInternalError(error);
    }
    const { reason, message, retryAfterS, headers } = failure;
    end.send({ kind: "failure", id, failure: { reason, message, retryAfterS, headers } } satisfies Message);
  }

  async function answerCall(id: number, name: string, given: unknown): Promise<void> {
    const controller = new AbortController();
    asked.set(id, { controller });
    try {
      answer(id, await own.calls[name]!(given as never, controller.signal));
    } catch (error) {
      fail(id, error);
    } finally {
      asked.delete(id);
    }
  }

  async function answerNext(id: number): Promise<void> {
    try {
      const { value, done } = (await asked.get(id)!.items!.next()) as IteratorResult<unknown, unknown>;
      if (done === true) {
        asked.delete(id);
        answer(id, undefined, true);
      } else {
        answer(id, value);
      }
    } catch (error) {
      asked.delete(id);
      fail(id, error);
    }
  }

  function leave(id: number): void {
    const found = asked.get(id);
    asked.delete(id);
    found?.controller.abort();
    // `return` of a generator waits for a pending `next`, which ends by the signal.
    found?.items?.return?.().catch(() => undefined);
  }

  return {
    take(message: Exclude<Message, { kind: "answer" | "failure" }>): void {
      if (message.kind === "tell") {
        own.tells[message.name]!(message.given as never);
      } else if (message.kind === "call") {
        void answerCall(message.id, message.name, message.given);
      } else if (message.kind === "leave") {
        leave(message.id);
      } else {
        if (message.kind === "stream") {
          const controller = new AbortController();
          const items = own.streams[message.name]!(message.given as never, controller.signal);
          asked.set(message.id, { controller, items: items[Symbol.asyncIterator]() });
        }
        if (asked.has(message.id)) {
          void answerNext(message.id);
        }
      }
    },
    leaveAll: () => [...asked.keys()].forEach(leave),
  };
}

function receive({ reason, message, retryAfterS, headers }: SentFailure): RpcError {
  return new RpcError(reason, message, retryAfterS, headers);
}
