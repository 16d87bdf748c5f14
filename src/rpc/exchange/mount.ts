/**
 * Requests that a server of HTTP/1.1 took which is not the node's, such as an application of Express. Its connections are
 * that server's, which may be busy with something else on them: for the gate a connection begins and ends with its
 * request.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { RpcError } from "../errors.js";
import type { Connection, ProtocolDeps } from "../gate.js";
import type { Exchange } from "./exchange.js";
import { Http1Exchange } from "./http1-exchange.js";
import { errorResponse } from "./responses.js";
import { serve } from "./serve.js";

export interface MountDeps extends Pick<ProtocolDeps, "gate" | "onInternalError"> {
  readonly nextRequestId: () => string;
  /** The headers that an answer goes out with, as a flat list of names and values; those that it has when left out. */
  readonly headersOf?: (exchange: Exchange, headers: readonly string[]) => readonly string[];
}

export interface Mount {
  /**
   * Makes an exchange of a request, whose path is relative to where the node is mounted; undefined where it was turned
   * away, and has been answered.
   */
  enter(request: IncomingMessage, response: ServerResponse): Http1Exchange | undefined;
  /** Turns requests away from now on, and finishes those under way for up to `graceMs`; those that are left are cut. */
  drain(graceMs: number): Promise<void>;
}

const retryAfterS = 1;

export function createMount(deps: MountDeps): Mount {
  const { gate, nextRequestId, headersOf = (_, headers) => headers } = deps;
  const open = new Set<Exchange>();
  let isDraining = false;
  let onClosed = (): void => undefined;

  function admit(request: IncomingMessage, response: ServerResponse): Http1Exchange | RpcError {
    if (isDraining) {
      return new RpcError("STATE_NOT_READY", "The node has been stopped.");
    }
    const { socket } = request;
    const connection = gate.connect(socket.remoteAddress ?? "", () => socket.destroy());
    if (connection === undefined) {
      return new RpcError("OVERLOADED", "There are too many requests of this address under way.", retryAfterS);
    }
    const exchange = new MountedExchange(nextRequestId(), connection, request, response, headersOf);
    open.add(exchange);
    exchange.onClose(() => {
      open.delete(exchange);
      connection.end();
      onClosed();
    });
    return exchange;
  }

  return {
    enter(request, response) {
      const admitted = admit(request, response);
      if (admitted instanceof RpcError) {
        const requestId = nextRequestId();
        new MountedExchange(requestId, noConnection, request, response, headersOf).send(
          errorResponse(requestId, admitted),
        );
      } else if (isBodyGone(request)) {
        refuseBody(admitted, deps);
      } else {
        return admitted;
      }
      return undefined;
    },
    async drain(graceMs) {
      isDraining = true;
      if (open.size === 0) {
        return;
      }
      await new Promise<void>((resolve) => {
        const giveUp = setTimeout(() => open.forEach((exchange) => exchange.abort()), graceMs);
        onClosed = () => {
          if (open.size === 0) {
            clearTimeout(giveUp);
            resolve();
          }
        };
      });
    },
  };
}

/** Handlers before this one may have wrapped the response, or set headers of their own: those of the answer win. */
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

  /** One by one, since wrappers that hear of headers do not all know the flat list. */
  protected override writeHead(status: number, given: readonly string[]): void {
    const headers = this.headersOf(this, given);
    for (let i = 0; i < headers.length; i += 2) {
      this.response.removeHeader(headers[i]!);
    }
    for (let i = 0; i < headers.length; i += 2) {
      this.response.appendHeader(headers[i]!, headers[i + 1]!);
    }
    this.response.writeHead(status);
  }
}

/** Of a request that the gate is not asked about. */
const noConnection: Connection = {
  remoteAddress: "",
  provenIdentity: undefined,
  penalize: () => undefined,
  end: () => undefined,
};

/** A handler before this one has read it. */
function isBodyGone({ headers, readableDidRead, readableEnded }: IncomingMessage): boolean {
  const hasBody = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
  return hasBody && (readableDidRead || readableEnded);
}

/** What a parser has made of a body is not what was sent, so nothing is made of that. */
function refuseBody(exchange: Exchange, deps: MountDeps): void {
  serve(
    exchange,
    {
      protocol: "http",
      method: undefined,
      respond() {
        throw new Error(
          "The body of a request was read before the request came to the node: mount the node before body parsers, such as express.json().",
        );
      },
      refuse: (failure, headers) => errorResponse(exchange.requestId, failure, headers),
    },
    deps,
  );
}
