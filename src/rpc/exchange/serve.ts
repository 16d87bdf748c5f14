/** What every request goes through, whatever its protocol: the gate, the call with its deadline, the one answer. */
import { RpcError } from "../errors.js";
import { toReportedError, type Permit, type Protocol, type ProtocolDeps } from "../gate.js";
import type { Call, Caller, ServedMethod } from "../service.js";
import type { HttpResponse, Exchange } from "./exchange.js";

/** How a protocol answers an exchange. */
export interface Serving {
  readonly protocol: Protocol;
  /** The rpc asked for; undefined where there is none, or the body names it. */
  readonly method: ServedMethod | undefined;
  /** Milliseconds after which nobody waits for the answer; undefined where the caller did not say. */
  readonly timeoutMs?: number | undefined;
  /** Makes the answer, or gives it by itself, as streams do, and resolves with nothing at its end. */
  respond(lease: Permit, call: Call): HttpResponse | Promise<HttpResponse | undefined>;
  /**
   * How a failure is told, with the headers that the lease has; `headers` is a flat list of names and values. Without an
   * answer somebody else gives it.
   */
  refuse(failure: RpcError, headers: readonly string[]): HttpResponse | undefined;
}

/** Answers an exchange. */
export function serve(
  exchange: Exchange,
  serving: Serving,
  deps: Pick<ProtocolDeps, "gate" | "onInternalError">,
): void {
  let lease: Permit | undefined;
  let call: ExchangeCall | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isDone = false;

  const finish = (answer: HttpResponse | undefined): void => {
    if (isDone) {
      return;
    }
    if (answer !== undefined) {
      chargeAnswer(lease!, answer);
      lease!.recordOutcome();
      exchange.send(answer);
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
    lease?.recordOutcome(failure);
    if (exchange.headersSent) {
      exchange.abort();
      return;
    }
    try {
      const answer = serving.refuse(failure, lease?.headers ?? []);
      if (answer !== undefined) {
        exchange.send(answer);
      }
    } catch (error) {
      deps.onInternalError(error, exchange.requestId);
      exchange.abort();
    }
  };

  try {
    lease = deps.gate.admit(exchange, serving.protocol, serving.method);
    call = new ExchangeCall(lease.callerOf(serving.method), exchange);
    if (serving.timeoutMs !== undefined) {
      if (serving.timeoutMs < 1) {
        throw deadlineExceeded();
      }
      timer = setTimeout(() => {
        fail(deadlineExceeded());
        call!.abort();
      }, serving.timeoutMs);
      exchange.onClose(() => clearTimeout(timer));
    }
    const refusal = whyNotRead(serving.method, exchange, call.caller);
    if (refusal !== undefined) {
      // Who is answered while he still sends may never hear it.
      exchange.discardBody().then(() => fail(refusal), fail);
      return;
    }
    const { ready } = lease;
    const answer =
      ready === undefined ? serving.respond(lease, call) : ready.then(() => serving.respond(lease!, call!));
    if (answer instanceof Promise) {
      answer.then(finish).catch(fail);
    } else {
      finish(answer);
    }
  } catch (error) {
    fail(error);
  }
}

/** What a call fails with whatever its body says; undefined where that is to be seen. */
function whyNotRead(method: ServedMethod | undefined, exchange: Exchange, caller: Caller): unknown {
  try {
    // Most rpcs do not ask: their headers are not looked at for it.
    return method?.beforeBody?.(exchange.contentLength, caller);
  } catch (error) {
    return error;
  }
}

/** The failure of a call whose caller does not wait any more. */
export function deadlineExceeded(): RpcError {
  return new RpcError("DEADLINE_EXCEEDED", "The time that the caller gave has passed.");
}

/** Of bytes that are shared, an answer holds no more than what is copied of them on their way out: a frame of HTTP/2. */
const sharedBytes = 16 * 1024;

/** Takes room for an answer, before its first byte is sent. */
function chargeAnswer(lease: Permit, { body, isShared = false }: HttpResponse): void {
  if (body !== undefined) {
    const bytes = typeof body === "string" ? Buffer.byteLength(body) : body.length;
    lease.reserveResponseBytes(isShared ? Math.min(bytes, sharedBytes) : bytes, bytes);
  }
}

/** The exchange that a call came by; it throws for one that came otherwise. */
export function exchangeOf(call: Call): Exchange {
  if (!(call instanceof ExchangeCall)) {
    throw new TypeError("The call came by no exchange.");
  }
  return call.exchange;
}

/** A call whose signal is made when first asked for: most reads never ask. */
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
