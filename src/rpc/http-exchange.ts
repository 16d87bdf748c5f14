/** One plain HTTP request, as the gate and the implementations see it. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Arrival } from "./gate.js";
import type { Call, Caller, ServedMethod } from "./service.js";

/** The request as the gate sees it. */
export class HttpArrival implements Arrival {
  constructor(
    readonly requestId: string,
    readonly protocol: Arrival["protocol"],
    private readonly request: IncomingMessage,
    readonly method: ServedMethod | undefined,
  ) {}

  get remoteAddress(): string {
    return this.request.socket.remoteAddress ?? "";
  }

  header(name: string): string | undefined {
    const value = this.request.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  }
}

/** The call as an implementation sees it. The signal is made when first asked for: most reads never ask. */
export class HttpCall implements Call {
  #signal: AbortSignal | undefined;

  constructor(
    readonly caller: Caller,
    private readonly response: ServerResponse,
  ) {}

  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      const controller = new AbortController();
      this.#signal = controller.signal;
      this.response.once("close", () => controller.abort());
      if (this.response.closed) {
        controller.abort();
      }
    }
    return this.#signal;
  }
}
