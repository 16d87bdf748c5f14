/**
 * Plain HTTP with JSON for Connect services, exported from the package as `gatehouse/transcoding`. Provides an Express
 * router with a route for each `google.api.http` rule. README.md in this directory lists the supported features and the
 * limitations.
 */
import type { ConnectError, ConnectRouter, ContextValues, Interceptor } from "@connectrpc/connect";
import type { NextFunction, Request, Response, Router } from "express";
import { createUnrestrictedGate } from "../edge/unrestricted-gate.js";
import { toConnectError } from "../rpc/connect/connect-error.js";
import { createMount } from "../rpc/exchange/mount.js";
import { errorResponse } from "../rpc/exchange/responses.js";
import { createRequestIds } from "../rpc/exchange/exchange.js";
import { compileEndpoints } from "../rpc/http/transcoder.js";
import { createTranscodingRouter, type ExchangeOf } from "./router.js";
import { ConnectRpcError, serveRoutes } from "./served-routes.js";

export interface TranscodeOptions {
  /** Registers the services, as in any Connect adapter. */
  readonly routes: (router: ConnectRouter) => void;
  /** Returns the context values of a call. */
  readonly contextValues?: (request: Request) => ContextValues;
  /** Interceptors, as in any Connect adapter. */
  readonly interceptors?: Interceptor[];
  /**
   * Responds with an error, or passes it on with `next(error)`. By default the response is
   * `{"success":false,"error":…,"errorCode":…}` with the HTTP status of the error's code.
   */
  readonly onError?: (error: ConnectError, request: Request, response: Response, next: NextFunction) => void;
}

interface HandledRequest {
  readonly request: Request;
  readonly response: Response;
  readonly next: NextFunction;
}

/**
 * Creates a router for the plain HTTP routes of the services. Other requests go to the next handler. Mount the router
 * before handlers that read request bodies, such as `express.json()`.
 *
 * @throws Error that names the rpc with an unsupported rule, or both rpcs that claim the same method and path.
 */
export function transcode({ routes, contextValues, interceptors = [], onError }: TranscodeOptions): Router {
  const handled = new WeakMap<object, HandledRequest>();
  const { services, gate, ownHeaders } = serveRoutes(
    routes,
    interceptors,
    (exchange) => contextValues?.(handled.get(exchange)!.request),
    createUnrestrictedGate(),
  );
  // Exceptions of the functions arrive as Connect errors, as the library converts them. None is reported here.
  const deps = { services, gate, onInternalError: () => undefined };
  const mount = createMount({
    ...deps,
    nextRequestId: createRequestIds(),
    // The application decides on CORS and cache headers.
    headersOf: (exchange, headers) => [...pick(headers, keptHeaderNames), ...ownHeaders(exchange)],
  });
  const endpoints = compileEndpoints(deps, (exchange, failure, headers) => {
    ownHeaders(exchange).push(...failure.headers);
    if (onError === undefined) {
      return errorResponse(exchange.requestId, failure, headers);
    }
    const { request, response, next } = handled.get(exchange)!;
    onError(failure instanceof ConnectRpcError ? failure.error : toConnectError(failure), request, response, next);
    return undefined;
  });
  const acceptRequest: ExchangeOf = (request, response, next) => {
    const exchange = mount.accept(request, response);
    if (exchange !== undefined) {
      handled.set(exchange, { request, response, next });
    }
    return exchange;
  };
  return createTranscodingRouter(endpoints, acceptRequest, false);
}

/** Headers that describe the body, the connection or the retry delay. */
const keptHeaderNames = /^(content-|transfer-|retry-after$|x-accel-buffering$|connection$)/i;

function pick(headers: readonly string[], names: RegExp): string[] {
  return headers.flatMap((name, i) => (i % 2 === 0 && names.test(name) ? [name, headers[i + 1]!] : []));
}
