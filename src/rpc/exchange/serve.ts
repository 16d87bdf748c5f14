/**
 * Common processing of every request, in any protocol: admission, the call with its deadline, and exactly one response.
 */
import { RpcError } from "../errors.js";
import { toReportedError, type Permit, type Protocol, type ProtocolDeps } from "../gate.js";
import type { Call, Caller, ServedMethod } from "../service.js";
import type { HttpResponse, Exchange } from "./exchange.js";
import { errorResponse } from "./responses.js";
import { readTimeout } from "./rpc-requests.js";

export interface ExchangeHandling {
  readonly protocol: Protocol;
  /** Requested rpc; undefined if there is none, or if the body names it. */
  readonly method?: ServedMethod | undefined;
  /** Creates the response. A stream sends its own response, and resolves with undefined at its end. */
  respond(permit: Permit, call: Call): HttpResponse | Promise<HttpResponse | undefined>;
  /**
   * Returns the response for an error; undefined if another component sends it. `headers` are those of the permit, a
   * flat list of names and values. By default the response is that of plain HTTP.
   */
  readonly reject?: ((failure: RpcError, headers: readonly string[]) => HttpResponse | undefined) | undefined;
}

export type ServeDeps = Pick<ProtocolDeps, "gate" | "onInternalError">;

/** Processes an exchange. */
export function serveExchange(exchange: Exchange, handling: ExchangeHandling, deps: ServeDeps): void {
  let permit: Permit | undefined;
  let call: ExchangeCall | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isDone = false;

  const finish = (response: HttpResponse | undefined): void => {
    if (isDone) {
      return;
    }
    if (response !== undefined) {
      reserveResponse(permit!, response);
      permit!.recordOutcome();
      exchange.send(response);
    }
    isDone = true;
    clearTimeout(timer);
  };
  const fail = (thrown: unknown): void => {
    if (isDone) {
      return;
    }
    isDone = true;
    clearTimeout(timer);
    const failure = toReportedError(thrown, exchange.requestId, deps);
    permit?.recordOutcome(failure);
    if (exchange.headersSent) {
      exchange.abort();
      return;
    }
    try {
      const headers = permit?.headers ?? [];
      const response =
        handling.reject === undefined
          ? errorResponse(exchange.requestId, failure, headers)
          : handling.reject(failure, headers);
      if (response !== undefined) {
        exchange.send(response);
      }
    } catch (error) {
      deps.onInternalError(error, exchange.requestId);
      exchange.abort();
    }
  };

  try {
    permit = deps.gate.admit(exchange, handling.protocol, handling.method);
    call = new ExchangeCall(permit.callerOf(handling.method), exchange);
    const timeoutMs = readTimeout(exchange, handling.protocol);
    if (timeoutMs !== undefined) {
      if (timeoutMs < 1) {
        throw deadlineExceeded();
      }
      timer = setTimeout(() => {
        const failure = deadlineExceeded();
        if (!exchange.headersSent) {
          fail(failure);
        }
        // A stream that has started ends itself, with this error.
        call!.abort(failure);
      }, timeoutMs);
      exchange.onClose(() => clearTimeout(timer));
    }
    const rejection = checkBeforeBody(handling.method, exchange, call.caller);
    if (rejection !== undefined && exchange.awaitsContinue) {
      fail(rejection);
      return;
    }
    if (rejection !== undefined) {
      // A client that is still sending may never read the response. Discard the body first.
      exchange.discardBody().then(() => fail(rejection), fail);
      return;
    }
    const { ready } = permit;
    const response =
      ready === undefined
        ? handling.respond(permit, call)
        : ready.then(() => (isDone || exchange.isClosed ? undefined : handling.respond(permit!, call!)));
    if (response instanceof Promise) {
      response.then(finish).catch(fail);
    } else {
      finish(response);
    }
  } catch (error) {
    fail(error);
  }
}

/** Processes an exchange that is rejected with this error, unless the gate rejects it first. */
export function rejectExchange(
  exchange: Exchange,
  failure: Error,
  handling: Omit<ExchangeHandling, "respond">,
  deps: ServeDeps,
): void {
  const respond = (): never => {
    throw failure;
  };
  serveExchange(exchange, { ...handling, respond }, deps);
}

/**
 * Creates a lazily loaded handler. The first use loads it. Exchanges wait meanwhile, unless they close. After an error,
 * the next use tries again.
 */
export function createLazyHandler<T>(load: () => Promise<T>, { onInternalError }: Pick<ServeDeps, "onInternalError">) {
  let loaded: T | undefined;
  let loading: Promise<T> | undefined;

  async function get(): Promise<T> {
    loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return (loaded = await loading);
  }

  function handle(exchange: Exchange, by: (handler: T) => void): void {
    if (loaded !== undefined) {
      by(loaded);
      return;
    }
    get()
      .then((handler) => (exchange.isClosed ? undefined : by(handler)))
      .catch((error: unknown) => {
        onInternalError(error, exchange.requestId);
        exchange.abort();
      });
  }
  return { get, handle };
}

/** Returns the error of a call that is rejected before its body is read; undefined if the body must be read. */
function checkBeforeBody(method: ServedMethod | undefined, exchange: Exchange, caller: Caller): unknown {
  try {
    // Most rpcs have no check, so their headers are not read here.
    return method?.beforeBody?.(exchange.contentLength, caller);
  } catch (error) {
    return error;
  }
}

export function deadlineExceeded(): RpcError {
  return new RpcError("DEADLINE_EXCEEDED", "The call exceeded its deadline; allow more time or request less.");
}

/** Limit on the bytes reserved for a shared body: only one HTTP/2 frame of it is copied at a time. */
const maxSharedReservation = 16 * 1024;

/** Reserves the bytes of a response before its first byte is sent. */
function reserveResponse(permit: Permit, { body, isShared = false }: HttpResponse): void {
  if (body !== undefined) {
    const bytes = typeof body === "string" ? Buffer.byteLength(body) : body.length;
    permit.reserveResponseBytes(isShared ? Math.min(bytes, maxSharedReservation) : bytes, bytes);
  }
}

/** Returns the exchange of a call. Throws TypeError for a call without an exchange. */
export function exchangeOf(call: Call): Exchange {
  if (!(call instanceof ExchangeCall)) {
    throw new TypeError("The call has no HTTP exchange: it did not arrive at a handler of this server.");
  }
  return call.exchange;
}

/** Call whose signal is created on first access, because most reads never use it. */
class ExchangeCall implements Call {
  private controller: AbortController | undefined;
  private isAborted = false;
  private reason: RpcError | undefined;

  constructor(
    readonly caller: Caller,
    readonly exchange: Exchange,
  ) {}

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      this.exchange.onClose(() => this.abort());
      if (this.isAborted) {
        this.controller.abort(this.reason);
      }
    }
    return this.controller.signal;
  }

  abort(reason?: RpcError): void {
    this.isAborted = true;
    this.reason = reason;
    this.controller?.abort(reason);
  }
}
