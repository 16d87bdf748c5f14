/**
 * Plain HTTP with JSON for annotated rpcs. Each route is compiled at startup: path template to matcher, request to
 * binder, response to encoder.
 */
import { RpcError } from "../errors.js";
import type { Permit, ProtocolDeps } from "../gate.js";
import type { Exchange, Handler, HttpResponse } from "../exchange/exchange.js";
import { maxBodyBytes } from "../exchange/body.js";
import { createCaching, type Reply, type RespondCached, shareBytes } from "../exchange/caching.js";
import { jsonResponse, notModified } from "../exchange/responses.js";
import { serveExchange } from "../exchange/serve.js";
import { type HttpRoute, pathFieldsOf, readHttpRoutes } from "./http-rule.js";
import { responseEncoder } from "../codec/json-encoder.js";
import { compileResume, compileStream } from "./event-stream.js";
import { compileRequestBinder } from "./request-binder.js";
import { RouteTable, splitPath } from "./route-table.js";
import { type Call, fullNameOf, type ServedMethod } from "../service.js";

/** Creates the response to a request. A stream sends its own response, and resolves with undefined. */
type Respond = (
  exchange: Exchange,
  parameters: readonly string[],
  permit: Permit,
  call: Call,
) => HttpResponse | Promise<HttpResponse | undefined>;

/** Rpc with its plain HTTP route, independent of the router. */
export interface Endpoint {
  readonly route: HttpRoute;
  readonly served: ServedMethod;
  /**
   * Handles a request.
   *
   * @param parameters decoded values of the template's fields, in the template's order.
   */
  handle(exchange: Exchange, parameters: readonly string[]): void;
}

/**
 * Returns the response for an error, to replace the common error body; undefined if another component sends the
 * response.
 */
export type Reject = (exchange: Exchange, failure: RpcError, headers: readonly string[]) => HttpResponse | undefined;

/**
 * Compiles the plain HTTP routes of all annotated rpcs, in their order.
 *
 * @throws Error that names the rpc if its rule is not supported.
 */
export function compileEndpoints(deps: ProtocolDeps, reject?: Reject): Endpoint[] {
  const cachingOf = createCaching(deps);
  return deps.services
    .flatMap(({ methods }) => methods)
    .flatMap((served) => readHttpRoutes(served.desc).map((route) => ({ served, route })))
    .map(({ served, route }) => {
      const respond = route.isStream
        ? compileStreamRoute(served, route, deps)
        : compileRoute(served, route, cachingOf(served));
      return {
        ...{ served, route },
        handle: (exchange, parameters) =>
          serveExchange(
            exchange,
            {
              protocol: "http",
              method: served,
              respond: (permit, call) => respond(exchange, parameters, permit, call),
              reject: reject && ((failure, headers) => reject(exchange, failure, headers)),
            },
            deps,
          ),
      };
    });
}

/**
 * Compiles the lookup of endpoints by path and method.
 *
 * @throws Error that names both rpcs if two of them claim the same paths.
 */
export function createTranscoder(endpoints: readonly Endpoint[]) {
  const table = new RouteTable<Endpoint>();
  for (const endpoint of endpoints) {
    const { method, template } = endpoint.route;
    for (const httpMethod of method === "GET" ? ["GET", "HEAD"] : [method]) {
      table.add(httpMethod, template, fullNameOf(endpoint.served.desc), endpoint);
    }
  }

  const handle: Handler = (exchange) => {
    const match = table.find(exchange.path);
    const endpoint = match?.endpoints.get(exchange.method);
    endpoint?.handle(exchange, match!.parameters);
    return endpoint !== undefined;
  };

  /**
   * Returns the HTTP methods of a path; empty for an unknown path.
   *
   * @throws RpcError INVALID_REQUEST if the percent-encoding is malformed.
   */
  function methodsOf(path: string): string[] {
    if (splitPath(path) === undefined) {
      throw new RpcError("INVALID_REQUEST", "The path has a malformed percent-encoding.");
    }
    return [...(table.find(path)?.endpoints.keys() ?? [])];
  }
  return { handle, methodsOf };
}

function compileRoute(
  served: ServedMethod,
  { template, responseField, body }: HttpRoute,
  respondCached: RespondCached,
): Respond {
  const { input, output } = served.desc;
  const bind = compileRequestBinder(input, pathFieldsOf(template), body);
  const encode = shareBytes(responseEncoder(output, responseField));
  return (exchange, parameters, permit, call) =>
    respondCached(exchange, call.caller, {
      invoke: () =>
        body === undefined
          ? served.invoke(bind(parameters, exchange.query, undefined), call)
          : exchange
              .readBytes(maxBodyBytes, permit)
              .then((bytes) => served.invoke(bind(parameters, exchange.query, bytes), call)),
      encode,
      createResponse: (reply) => createResponse(reply, exchange, permit),
    });
}

function createResponse(
  { headers, isImmutable, body, plain }: Reply,
  { requestId }: Exchange,
  permit: Permit,
): HttpResponse {
  const added = isImmutable ? headers : [...headers, ...permit.headers];
  return body === undefined
    ? notModified(requestId, added)
    : jsonResponse(
        requestId,
        plain?.status ?? 200,
        body,
        plain?.headers === undefined ? added : [...added, ...plain.headers],
      );
}

function compileStreamRoute(served: ServedMethod, route: HttpRoute, deps: ProtocolDeps): Respond {
  const bind = compileRequestBinder(served.desc.input, pathFieldsOf(route.template), route.body);
  const resume = compileResume(served.desc.input);
  const send = compileStream(served, route, deps);
  return async (exchange, parameters, permit, call) => {
    const body = route.body === undefined ? undefined : await exchange.readBytes(maxBodyBytes, permit);
    const request = resume(bind(parameters, exchange.query, body), exchange);
    await send(exchange, permit, served.invoke(request, call) as AsyncIterable<object>);
    return undefined;
  };
}
