/**
 * Handler chain of every request, in HTTP/1.1 and HTTP/2. Each handler checks method, path and content type, and the
 * first that matches responds.
 */
import { RpcError } from "../errors.js";
import type { ProtocolDeps } from "../gate.js";
import { corsHeaders, preflightHeaders } from "../exchange/cors.js";
import { type Exchange, type Handler } from "../exchange/exchange.js";
import { maxBodyBytes } from "../exchange/body.js";
import { errorResponse, jsonResponse, methodNotAllowed } from "../exchange/responses.js";
import { serveExchange } from "../exchange/serve.js";
import { prefersHtml } from "../http/negotiation.js";
import type { PageServer } from "../http/pages.js";
import type { JsonRpcEntry } from "../json-rpc/json-rpc.js";
import type { JsonRpcRequest } from "../json-rpc/request.js";

type Deps = Pick<ProtocolDeps, "gate" | "onInternalError">;

/** Chains handlers; `fallback` handles the requests that no other handler matched. The chain never throws. */
export function chainHandlers(
  handlers: readonly Handler[],
  fallback: (exchange: Exchange) => void,
  { onInternalError }: Pick<Deps, "onInternalError">,
): (exchange: Exchange) => void {
  return (exchange) => {
    try {
      if (!handlers.some((handle) => handle(exchange))) {
        fallback(exchange);
      }
    } catch (error) {
      onInternalError(error, exchange.requestId);
      exchange.abort();
    }
  };
}

/** Creates the handler of preflights: `OPTIONS` on any path. */
export function createPreflightHandler(deps: Deps): Handler {
  return (exchange) => {
    if (exchange.method !== "OPTIONS") {
      return false;
    }
    const { requestId } = exchange;
    serveExchange(
      exchange,
      {
        protocol: "http",
        method: undefined,
        respond: ({ headers }) => ({
          status: 204,
          headers: ["X-Request-Id", requestId, ...preflightHeaders, ...headers],
        }),
        reject: (failure, headers) => errorResponse(requestId, failure, headers),
      },
      deps,
    );
    return true;
  };
}

/** Creates the handler of `POST /`, the JSON-RPC entry point. */
export function createJsonRpcHandler(jsonRpc: JsonRpcEntry, deps: Deps): Handler {
  return (exchange) => {
    if (exchange.method !== "POST" || exchange.path !== "/") {
      return false;
    }
    const { requestId } = exchange;
    serveExchange(
      exchange,
      {
        protocol: "json-rpc",
        method: undefined,
        async respond(permit, call) {
          const body = (await exchange.readBytes(maxBodyBytes, permit)).toString("utf8");
          const request: JsonRpcRequest = { body, arrival: exchange, permit, call };
          const text = await jsonRpc(request);
          permit.recordOutcome(request.failure);
          return text === undefined
            ? { status: 204, headers: ["X-Request-Id", requestId] }
            : jsonResponse(requestId, 200, { body: text }, permit.headers);
        },
        reject: (failure, headers) => errorResponse(requestId, failure, headers),
      },
      deps,
    );
    return true;
  };
}

/** Creates the handler of documents. */
export function createPageHandler(pages: PageServer, deps: Deps): Handler {
  return (exchange) => {
    const { path, method, requestId } = exchange;
    if (!pages.has(path) || (method !== "GET" && method !== "HEAD")) {
      return false;
    }
    serveExchange(
      exchange,
      {
        protocol: "http",
        method: undefined,
        respond: ({ headers }) => pages.respond(exchange, ["X-Request-Id", requestId, ...headers]),
        reject: (failure, headers) => errorResponse(requestId, failure, headers),
      },
      deps,
    );
    return true;
  };
}

/** Path of the front page. */
const frontPage = "/explore";

/**
 * Creates the handler of browsers at `/`, which are redirected to the front page. All other clients get the rpc of this
 * path (docs/decisions/0047-front-page.md).
 */
export function createFrontHandler(pages: PageServer, deps: Deps): Handler {
  return (exchange) => {
    const { path, method, requestId } = exchange;
    const isFront = path === "/" && (method === "GET" || method === "HEAD") && pages.has(frontPage);
    if (!isFront || !prefersHtml(exchange.header("accept"))) {
      return false;
    }
    serveExchange(
      exchange,
      {
        protocol: "http",
        method: undefined,
        respond: ({ headers }) => ({
          status: 302,
          headers: [
            ...["Location", locationFrom(exchange), "X-Request-Id", requestId],
            ...["Cache-Control", "no-store", "Vary", "Accept", ...corsHeaders, ...headers],
          ],
        }),
        reject: (failure, headers) => errorResponse(requestId, failure, headers),
      },
      deps,
    );
    return true;
  };
}

/** Returns the relative URL of the front page. Under a mount point without a final slash, it must name the mount point. */
function locationFrom({ originalUrl }: Pick<Exchange, "originalUrl">): string {
  const mount = /([^/?#]*)(?:[?#].*)?$/s.exec(originalUrl)![1]!;
  return mount === "" ? `.${frontPage}` : `./${mount}${frontPage}`;
}

/** Creates the fallback handler, for unknown paths (404) and unsupported methods (405). */
export function createNotFoundHandler(
  methodsOf: (path: string) => readonly string[],
  deps: Deps,
): (exchange: Exchange) => void {
  return (exchange) =>
    serveExchange(
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
        reject: (failure, headers) => errorResponse(exchange.requestId, failure, headers),
      },
      deps,
    );
}
