/**
 * The chain of handlers that every request goes along, whichever HTTP brings it: each looks at method, path and content
 * type, and the first whose it is answers.
 */
import { RpcError } from "../errors.js";
import type { ProtocolDeps } from "../gate.js";
import { preflightHeaders } from "../exchange/cors.js";
import { type Exchange, type Handler } from "../exchange/exchange.js";
import { maxBodyBytes } from "../exchange/body.js";
import { errorResponse, jsonResponse, methodNotAllowed } from "../exchange/responses.js";
import { serve } from "../exchange/serve.js";
import type { PageServer } from "../http/pages.js";
import type { JsonRpcEntry } from "../json-rpc/json-rpc.js";
import type { JsonRpcRequest } from "../json-rpc/request.js";

type Deps = Pick<ProtocolDeps, "gate" | "onInternalError">;

/** Joins handlers; the last one answers whatever is left. No request can make it throw. */
export function chainHandlers(
  handlers: readonly Handler[],
  last: (exchange: Exchange) => void,
  { onInternalError }: Pick<Deps, "onInternalError">,
): (exchange: Exchange) => void {
  return (exchange) => {
    try {
      if (!handlers.some((handle) => handle(exchange))) {
        last(exchange);
      }
    } catch (error) {
      onInternalError(error, exchange.requestId);
      exchange.abort();
    }
  };
}

/** Answers preflights: `OPTIONS` on any path. */
export function createPreflightHandler(deps: Deps): Handler {
  return (exchange) => {
    if (exchange.method !== "OPTIONS") {
      return false;
    }
    const { requestId } = exchange;
    serve(
      exchange,
      {
        protocol: "http",
        method: undefined,
        respond: ({ headers }) => ({
          status: 204,
          headers: ["X-Request-Id", requestId, ...preflightHeaders, ...headers],
        }),
        refuse: (failure, headers) => errorResponse(requestId, failure, headers),
      },
      deps,
    );
    return true;
  };
}

/** Answers `POST /` with the JSON-RPC entry point. */
export function createJsonRpcHandler(jsonRpc: JsonRpcEntry, deps: Deps): Handler {
  return (exchange) => {
    if (exchange.method !== "POST" || exchange.path !== "/") {
      return false;
    }
    const { requestId } = exchange;
    serve(
      exchange,
      {
        protocol: "json-rpc",
        method: undefined,
        async respond(lease, call) {
          const body = (await exchange.readBytes(maxBodyBytes, lease)).toString("utf8");
          const given: JsonRpcRequest = { body, arrival: exchange, lease, call };
          const text = await jsonRpc(given);
          lease.recordOutcome(given.failure);
          return text === undefined
            ? { status: 204, headers: ["X-Request-Id", requestId] }
            : jsonResponse(requestId, 200, { body: text }, lease.headers);
        },
        refuse: (failure, headers) => errorResponse(requestId, failure, headers),
      },
      deps,
    );
    return true;
  };
}

/** Answers the paths of documents. */
export function createPageHandler(pages: PageServer, deps: Deps): Handler {
  return (exchange) => {
    const { path, method, requestId } = exchange;
    if (!pages.has(path) || (method !== "GET" && method !== "HEAD")) {
      return false;
    }
    serve(
      exchange,
      {
        protocol: "http",
        method: undefined,
        respond: ({ headers }) => pages.answer(exchange, ["X-Request-Id", requestId, ...headers]),
        refuse: (failure, headers) => errorResponse(requestId, failure, headers),
      },
      deps,
    );
    return true;
  };
}

/** Answers what is nobody's: there is nothing at the path, or not for this method. */
export function createNotFoundHandler(
  methodsOf: (path: string) => readonly string[],
  deps: Deps,
): (exchange: Exchange) => void {
  return (exchange) =>
    serve(
      exchange,
      {
        protocol: "http",
        method: undefined,
        respond() {
          const methods = methodsOf(exchange.path);
          throw methods.length === 0
            ? new RpcError("NOT_FOUND", "There is nothing at this path.")
            : methodNotAllowed(exchange.method, [...methods, "OPTIONS"]);
        },
        refuse: (failure, headers) => errorResponse(exchange.requestId, failure, headers),
      },
      deps,
    );
}
