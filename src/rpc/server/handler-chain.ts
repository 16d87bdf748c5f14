/**
 * Handler chain of every request, in HTTP/1.1 and HTTP/2. Each handler checks method, path and content type, and the
 * first that matches responds.
 */
import { RpcError } from "../errors.js";
import type { Exchange, Handler, HttpResponse } from "../exchange/exchange.js";
import { maxBodyBytes } from "../exchange/body.js";
import { corsHeaders, jsonResponse, methodNotAllowed, preflightHeaders } from "../exchange/responses.js";
import { serveExchange, type ServeDeps } from "../exchange/serve.js";
import type { Permit, Protocol } from "../gate.js";
import { prefersHtml } from "../http/negotiation.js";
import type { PageServer } from "../http/pages.js";
import type { JsonRpcEntry } from "../json-rpc/json-rpc.js";
import type { JsonRpcRequest } from "../json-rpc/request.js";
import type { Call } from "../service.js";

/** Chains handlers; `fallback` handles the requests that no other handler matched. The chain never throws. */
export function chainHandlers(
  handlers: readonly Handler[],
  fallback: (exchange: Exchange) => void,
  { onInternalError }: Pick<ServeDeps, "onInternalError">,
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

function createHandler(
  matches: Handler,
  respond: (exchange: Exchange, permit: Permit, call: Call) => HttpResponse | Promise<HttpResponse>,
  deps: ServeDeps,
  protocol: Protocol = "http",
): Handler {
  return (exchange) => {
    if (!matches(exchange)) {
      return false;
    }
    serveExchange(exchange, { protocol, respond: (permit, call) => respond(exchange, permit, call) }, deps);
    return true;
  };
}

/**
 * Creates the handler of preflights. They are counted and never rejected: a page cannot read the error of a preflight,
 * and the request that follows has its own admission.
 */
export function createPreflightHandler({ gate }: Pick<ServeDeps, "gate">): Handler {
  return (exchange) => {
    if (exchange.method !== "OPTIONS") {
      return false;
    }
    exchange.send({ status: 204, headers: ["X-Request-Id", exchange.requestId, ...preflightHeaders] });
    gate.record(exchange, "OK");
    return true;
  };
}

/** Creates the handler of `POST /`, the JSON-RPC entry point. */
export function createJsonRpcHandler(jsonRpc: JsonRpcEntry, deps: ServeDeps): Handler {
  return createHandler(
    ({ method, path }) => method === "POST" && path === "/",
    async (exchange, permit, call) => {
      const body = await exchange.readBytes(maxBodyBytes, permit);
      const request: JsonRpcRequest = { body, arrival: exchange, permit, call };
      const text = await jsonRpc(request);
      permit.recordOutcome(request.failure);
      return text === undefined
        ? { status: 204, headers: ["X-Request-Id", exchange.requestId] }
        : jsonResponse(exchange.requestId, 200, { body: text }, permit.headers);
    },
    deps,
    "json-rpc",
  );
}

export function createPageHandler(pages: PageServer, deps: ServeDeps): Handler {
  return createHandler(
    ({ path, method }) => pages.has(path) && isRead(method),
    (exchange, { headers }) => pages.respond(exchange, ["X-Request-Id", exchange.requestId, ...headers]),
    deps,
  );
}

function isRead(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

const frontPage = "/explore";

/**
 * Creates the handler of browsers at `/`, which are redirected to the front page. All other clients get the rpc of this
 * path (docs/decisions/0047-front-page.md).
 */
export function createFrontHandler(pages: PageServer, deps: ServeDeps): Handler {
  return createHandler(
    (exchange) =>
      exchange.path === "/" &&
      isRead(exchange.method) &&
      pages.has(frontPage) &&
      prefersHtml(exchange.header("accept")),
    (exchange, { headers }) => ({
      status: 302,
      headers: [
        ...["Location", locationFrom(exchange), "X-Request-Id", exchange.requestId],
        ...["Cache-Control", "no-store", "Vary", "Accept", ...corsHeaders, ...headers],
      ],
    }),
    deps,
  );
}

/** Returns the relative URL of the front page. Under a mount point without a final slash, it must name the mount point. */
function locationFrom({ originalUrl }: Exchange): string {
  const mount = /([^/?#]*)(?:[?#].*)?$/s.exec(originalUrl)![1]!;
  return mount === "" ? `.${frontPage}` : `./${mount}${frontPage}`;
}

/** Creates the fallback handler, for unknown paths (404) and unsupported methods (405). */
export function createNotFoundHandler(
  methodsOf: (path: string) => readonly string[],
  deps: ServeDeps,
): (exchange: Exchange) => void {
  return createHandler(
    () => true,
    ({ path, method }) => {
      const methods = methodsOf(path);
      throw methods.length === 0
        ? new RpcError("NOT_FOUND", "There is nothing at this path.")
        : methodNotAllowed(method, [...methods, "OPTIONS"]);
    },
    deps,
  );
}
