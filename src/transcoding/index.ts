/**
 * Plain HTTP with JSON for services of Connect, exported from the package as `gatehouse/transcoding`: a router of Express
 * with a route for each `google.api.http` rule. README.md beside this file says what it does, and what it does not.
 */
import type { ConnectRouter, ContextValues, Interceptor } from "@connectrpc/connect";
import type { NextFunction, Request, Response, Router } from "express";
import { createUnrestrictedGate } from "../edge/unrestricted-gate.js";
import { toConnectError } from "../rpc/connect/connect-error.js";
import type { ConnectError } from "@connectrpc/connect";
import { createMount } from "../rpc/exchange/mount.js";
import { errorResponse } from "../rpc/exchange/responses.js";
import { createRequestIds } from "../rpc/exchange/request-ids.js";
import { compileEndpoints } from "../rpc/http/transcoder.js";
import { ConnectRpcError } from "./connect-failure.js";
import { createTranscodingRouter, type ExchangeOf } from "./router.js";
import { serveRoutes } from "./served-routes.js";

export interface TranscodeOptions {
  /** Registers the services, as for every adapter of Connect. */
  readonly routes: (router: ConnectRouter) => void;
  /** The values that the context of a call has. */
  readonly contextValues?: (request: Request) => ContextValues;
  /** As of every adapter of Connect. */
  readonly interceptors?: Interceptor[];
  /**
   * Answers what failed, or hands it on, as to `next(error)`. Without it the answer is
   * `{"success":false,"error":…,"errorCode":…}` with the status of the error's code.
   */
  readonly onError?: (error: ConnectError, request: Request, response: Response, next: NextFunction) => void;
}

interface Asked {
  readonly request: Request;
  readonly response: Response;
  readonly next: NextFunction;
}

/**
 * Builds a router that answers the plain routes of the services, and hands everything else on. Mount it before what reads
 * request bodies, such as `express.json()`.
 *
 * @throws Error that names the rpc whose rule is not supported, or both rpcs that claim the same method and path.
 */
export function transcode({ routes, contextValues, interceptors = [], onError }: TranscodeOptions): Router {
  const asked = new WeakMap<object, Asked>();
  const { services, gate, ownHeaders } = serveRoutes({
    ...{ routes, interceptors, gate: createUnrestrictedGate() },
    contextValuesOf: (exchange) => contextValues?.(asked.get(exchange)!.request),
  });
  // What the functions throw is told as the library tells it.
  const parts = { services, gate, onInternalError: () => undefined };
  const mount = createMount({
    ...parts,
    nextRequestId: createRequestIds(),
    // What pages of other origins may read, and what caches may keep, is the application's to say.
    headersOf: (exchange, headers) => [...pick(headers, aboutTheBody), ...ownHeaders(exchange)],
  });
  const endpoints = compileEndpoints(parts, (exchange, failure, headers) => {
    ownHeaders(exchange).push(...failure.headers);
    if (onError === undefined) {
      return errorResponse(exchange.requestId, failure, headers);
    }
    const { request, response, next } = asked.get(exchange)!;
    onError(failure instanceof ConnectRpcError ? failure.error : toConnectError(failure), request, response, next);
    return undefined;
  });
  const enter: ExchangeOf = (request, response, next) => {
    const exchange = mount.enter(request, response);
    if (exchange !== undefined) {
      asked.set(exchange, { request, response, next });
    }
    return exchange;
  };
  return createTranscodingRouter(endpoints, enter, { mayEndEmpty: false });
}

/** Headers that say how a body is read, or what to do about a failure. */
const aboutTheBody = /^(content-|transfer-|retry-after$|x-accel-buffering$|connection$)/i;

function pick(headers: readonly string[], names: RegExp): string[] {
  return headers.flatMap((name, i) => (i % 2 === 0 && names.test(name) ? [name, headers[i + 1]!] : []));
}
