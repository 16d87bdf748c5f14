/**
 * Common processing of every request, in any protocol: admission, the call with its deadline, and exactly one response.
 */
import { RpcError } from "../errors.js";
import { toReportedError, type Permit, type Protocol, type ProtocolDeps } from "../gate.js";
import type { Call, Caller, ServedMethod } from "../service.js";
import type { HttpResponse, Exchange } from "./exchange.js";

/** Protocol-specific part of processing a request. */
export interface ExchangeHandling {
  readonly protocol: Protocol;
  /** Requested rpc; undefined if there is none, or if the body names it. */
  readonly method: ServedMethod | undefined;
  /** Timeout that the caller set, in milliseconds; undefined without one. */
  readonly timeoutMs?: number | undefined;
  /** Creates the response. A stream sends its own response, and resolves with undefined at its end. */
  respond(permit: Permit, call: Call): HttpResponse | Promise<HttpResponse | undefined>;
  /**
   * Returns the response for an error; undefined if another component sends it. `headers` are those of the permit, a
   * flat list of names and values.
   */
  reject(failure: RpcError, headers: readonly string[]): HttpResponse | undefined;
}

/** Processes an exchange. */
export function serveExchange(
  exchange: Exchange,
  handling: ExchangeHandling,
  deps: Pick<ProtocolDeps, "gate" | "onInternalError">,
): void {
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
      const response = handling.reject(failure, permit?.headers ?? []);
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
    if (handling.timeoutMs !== undefined) {
      if (handling.timeoutMs < 1) {
        throw deadlineExceeded();
      }
      timer = setTimeout(() => {
        fail(deadlineExceeded());
        call!.abort();
      }, handling.timeoutMs);
      exchange.onClose(() => clearTimeout(timer));
    }
    const rejection = checkBeforeBody(handling.method, exchange, call.caller);
    if (rejection !== undefined) {
      // A client that is still sending may never read the response. Discard the body first.
      exchange.discardBody().then(() => fail(rejection), fail);
      return;
    }
    const { ready } = permit;
    const response =
      ready === undefined ? handling.respond(permit, call) : ready.then(() => handling.respond(permit!, call!));
    if (response instanceof Promise) {
      response.then(finish).catch(fail);
    } else {
      finish(response);
    }
  } catch (error) {
    fail(error);
  }
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

/** Creates the error of a call that exceeded its deadline. */
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

  constructor(
    readonly caller: Caller,
    readonly exchange: Exchange,
  ) {}

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      this.exchange.onClose(() => this.abort());
      if (this.isAborted) {
        this.controller.abort();
      }
    }
    return this.controller.signal;
  }

  abort(): void {
    this.isAborted = true;
    this.controller?.abort();
  }
}
