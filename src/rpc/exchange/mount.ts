/**
 * Requests that another HTTP/1.1 server accepts, such as an Express application. That server owns the connections and
 * may use them for other requests. The gate therefore sees one connection for each request.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Flow } from "../../base/async/fair-scheduler.js";
import { RpcError } from "../errors.js";
import type { Connection, ProtocolDeps } from "../gate.js";
import type { Exchange } from "./exchange.js";
import { Http1Exchange } from "./http1-exchange.js";
import { isReset } from "./is-reset.js";
import { errorResponse } from "./responses.js";
import { rejectExchange } from "./serve.js";

export interface MountDeps extends Pick<ProtocolDeps, "gate" | "onInternalError"> {
  readonly nextRequestId: () => string;
  /** Returns the headers to send, as a flat list of names and values. By default the headers are sent unchanged. */
  readonly headersOf?: (exchange: Exchange, headers: readonly string[]) => readonly string[];
}

export type Mount = ReturnType<typeof createMount>;

export function createMount(deps: MountDeps) {
  const { gate, nextRequestId, headersOf = (_, headers) => headers } = deps;
  const open = new Set<Exchange>();
  let isDraining = false;

  function admit(request: IncomingMessage, response: ServerResponse): Http1Exchange | RpcError {
    if (isDraining) {
      return new RpcError("STATE_NOT_READY", "The node has been stopped.");
    }
    const { socket } = request;
    const connection = gate.connect(socket.remoteAddress ?? "", () => socket.destroy());
    if (connection === undefined) {
      return new RpcError("OVERLOADED", "Your address has too many requests in flight; try again in 1 s.", 1);
    }
    const exchange = new MountedExchange(nextRequestId(), connection, request, response, headersOf);
    open.add(exchange);
    connection.arrive();
    exchange.onClose(() => {
      open.delete(exchange);
      connection.leave();
      connection.end();
    });
    return exchange;
  }

  return {
    /**
     * Creates the exchange of a request, whose path is relative to the mount point. Returns undefined if the request
     * was rejected; then the response is sent already, or the connection is closed.
     */
    accept(request: IncomingMessage, response: ServerResponse): Http1Exchange | undefined {
      if (isReset(request.socket)) {
        request.socket.destroy();
        return undefined;
      }
      const admitted = admit(request, response);
      if (admitted instanceof RpcError) {
        const requestId = nextRequestId();
        new MountedExchange(requestId, noConnection, request, response, headersOf).send(
          errorResponse(requestId, admitted),
        );
      } else if (isBodyConsumed(request)) {
        const remedy = "mount the node before body parsers, such as express.json()";
        const error = new Error(`The body of a request was read before the request came to the node: ${remedy}.`);
        rejectExchange(admitted, error, { protocol: "http" }, deps);
      } else {
        return admitted;
      }
      return undefined;
    },
    /** Rejects new requests, and waits up to `graceMs` for those in progress. Aborts the rest. */
    async drain(graceMs: number): Promise<void> {
      isDraining = true;
      const abortOpen = setTimeout(() => open.forEach((exchange) => exchange.abort()), graceMs);
      await Promise.all([...open].map((exchange) => new Promise<void>((resolve) => exchange.onClose(resolve))));
      clearTimeout(abortOpen);
    },
  };
}

/**
 * Exchange whose response other handlers may have wrapped or given headers. The exchange's own headers take precedence.
 */
class MountedExchange extends Http1Exchange {
  constructor(
    requestId: string,
    connection: Connection,
    request: IncomingMessage,
    response: ServerResponse,
    private readonly headersOf: NonNullable<MountDeps["headersOf"]>,
  ) {
    super(requestId, connection, request, response);
  }

  /** Sets headers one at a time, because some wrappers do not support the flat list. */
  protected override writeHead(status: number, original: readonly string[]): void {
    const headers = this.headersOf(this, original);
    for (let i = 0; i < headers.length; i += 2) {
      this.response.removeHeader(headers[i]!);
    }
    for (let i = 0; i < headers.length; i += 2) {
      this.response.appendHeader(headers[i]!, headers[i + 1]!);
    }
    this.response.writeHead(status);
  }
}

/** Placeholder connection of a request that was rejected without the gate. */
const noConnection: Connection = {
  remoteAddress: "",
  provenIdentity: undefined,
  flow: new Flow(),
  unanswered: 0,
  maxStreams: Infinity,
  arrive: () => true,
  leave: () => undefined,
  wait: () => undefined,
  penalize: () => undefined,
  end: () => undefined,
};

/** Returns true if an earlier handler has read the body. */
function isBodyConsumed({ headers, readableDidRead, readableEnded }: IncomingMessage): boolean {
  const hasBody = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
  return hasBody && (readableDidRead || readableEnded);
}
