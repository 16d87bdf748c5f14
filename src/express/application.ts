/**
 * Express application that serves a node: routes for plain HTTP and documents, connect-express for Connect and
 * gRPC-Web, and 404 and 405. As in every protocol, the gate admits each request first.
 */
import type { ConnectRouter } from "@connectrpc/connect";
import express, { type ErrorRequestHandler, type Request, type RequestHandler } from "express";
import type { IncomingMessage } from "node:http";
import { type Handler, startWithSlash } from "../rpc/exchange/exchange.js";
import type { Http1Exchange } from "../rpc/exchange/http1-exchange.js";
import type { Application, ApplicationDeps } from "../rpc/server/rpc-server.js";
import { connectRoutes } from "../rpc/connect/routes.js";
import { createConnectMiddleware } from "./connect.js";
import { createTranscodingRouter } from "../transcoding/router.js";

/** Application with the members that an embedding Express application needs. */
export interface NodeApplication extends Application {
  readonly listener: express.Express;
  /** Registers the node's public services with any Connect adapter. */
  readonly routes: (router: ConnectRouter) => void;
}

export function buildApplication(deps: ApplicationDeps): NodeApplication {
  const { handlers, endpoints, pagePaths, protocol } = deps;
  const exchanges = new WeakMap<IncomingMessage, Http1Exchange>();
  const exchangeOf = (request: Request): Http1Exchange => exchanges.get(request)!;
  const toMiddleware =
    (handle: Handler): RequestHandler =>
    (request, _response, next) => {
      if (!handle(exchangeOf(request))) {
        next();
      }
    };

  const app = express();
  app.disable("x-powered-by").enable("case sensitive routing").disable("etag");
  app.use((request, response, next) => {
    const exchange = exchanges.get(request) ?? deps.accept(request, response);
    if (exchange !== undefined) {
      exchanges.set(request, exchange);
      request.url = normalizeForExpress(request.url);
      next();
    }
  });
  app.use(toMiddleware(handlers.preflight), toMiddleware(handlers.grpc), toMiddleware(handlers.front));
  app.use(createTranscodingRouter(endpoints, exchangeOf, true));
  app.post("/", toMiddleware(handlers.jsonRpc));
  app.use(createConnectMiddleware(protocol, exchangeOf));
  for (const path of pagePaths) {
    app.get(path, toMiddleware(handlers.pages));
  }
  app.use((request) => handlers.fallback(exchangeOf(request)));
  // Express could not decode the path, or failed itself. The fallback handler describes errors of the path.
  const onError: ErrorRequestHandler = (error: unknown, request, _response, next) => {
    const exchange = exchanges.get(request);
    if (exchange === undefined || exchange.headersSent) {
      next(error);
    } else if (isPathError(error)) {
      handlers.fallback(exchange);
    } else {
      protocol.onInternalError(error, exchange.requestId);
      exchange.abort();
    }
  };
  app.use(onError);

  return {
    listener: app,
    routes: connectRoutes(protocol),
    handle(exchange) {
      const { request, response } = exchange;
      exchanges.set(request, exchange);
      app(request, response);
    },
  };
}

function isPathError(error: unknown): boolean {
  return error instanceof URIError || (error as { readonly status?: unknown } | undefined)?.status === 400;
}

/**
 * Normalizes a URL so that Express matches its path as the compiled routes do. Express compares characters literally,
 * so encoded unreserved characters are decoded (RFC 3986, section 6.2.2.2). Express ends a path at `#`, which no
 * request may contain, so `#` is encoded.
 */
function normalizeForExpress(url: string): string {
  const mark = url.indexOf("?");
  const path = mark < 0 ? url : url.slice(0, mark);
  const normalized = /[%#]/.test(path) ? path.replaceAll("#", "%23").replace(unreserved, decodeURIComponent) : path;
  return startWithSlash(normalized) + url.slice(path.length);
}

/** Percent-encoded unreserved characters: letters, digits, `-`, `.`, `_` and `~`. */
const unreserved = /%(2[de]|3\d|[46][1-9a-f]|[57][0-9a]|5f|7e)/gi;
