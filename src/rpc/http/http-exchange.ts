/** One plain HTTP request, as the gate and the implementations see it. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Arrival } from "../gate.js";
import { type Caller, LazyCall, type ServedMethod } from "../service.js";

/** The request as the gate sees it. */
export class HttpArrival implements Arrival {
  constructor(
    readonly requestId: string,
    readonly protocol: Arrival["protocol"],
    private readonly request: IncomingMessage,
    /** Where the body names the rpc it is set when the body was read. */
    public method: ServedMethod | undefined,
  ) {}

  get remoteAddress(): string {
    return this.request.socket.remoteAddress ?? "";
  }

  header(name: string): string | undefined {
    const value = this.request.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  }
}

/** The call as an implementation sees it. */
export class HttpCall extends LazyCall {
  constructor(
    caller: Caller,
    private readonly response: ServerResponse,
  ) {
    super(caller);
  }

  protected get isGone(): boolean {
    return this.response.closed;
  }

  protected onGone(listener: () => void): void {
    this.response.once("close", listener);
  }
}
