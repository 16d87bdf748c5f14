/**
 * Plain HTTP with JSON for annotated rpcs. Each route is compiled at startup: path template to matcher, request to
 * binder, response to encoder.
 */
import { RpcError } from "../errors.js";
import type { Permit, ProtocolDeps } from "../gate.js";
import type { HttpResponse, HttpResponseBody, Exchange, Handler } from "../exchange/exchange.js";
import { maxBodyBytes } from "../exchange/body.js";
import { createCaching, notModified, type CachedResponse, type RpcCaching } from "../exchange/caching.js";
import { errorResponse, jsonResponse } from "../exchange/responses.js";
import { serveExchange } from "../exchange/serve.js";
import { paceResponse } from "../exchange/pacing.js";
import { type HttpRoute, pathFieldsOf, readHttpRoutes } from "./http-rule.js";
import { jsonEncoder, jsonFieldEncoder } from "../codec/json-encoder.js";
import { shareBytes } from "../exchange/share-bytes.js";
import { compileResume, compileStream } from "./event-stream.js";
import { compileRequestBinder } from "./request-binder.js";
import { RouteTable, splitPath } from "./route-table.js";
import type { Call, PlainReply, ServedMethod } from "../service.js";

/** Request to a route. */
interface RouteRequest {
  readonly exchange: Exchange;
  /** Values of the path's fields. */
  readonly parameters: readonly string[];
  readonly permit: Permit;
  readonly call: Call;
}

/** Creates the response to a request. A stream sends its own response, and resolves with undefined. */
type Respond = (request: RouteRequest) => HttpResponse | Promise<HttpResponse | undefined>;

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
 * @param reject creates the error responses.
 * @throws Error that names the rpc if its rule is not supported.
 */
export function compileEndpoints(deps: ProtocolDeps, reject: Reject = rejectInBody): Endpoint[] {
  const cachingOf = createCaching(deps.stateTags, deps.maxCacheBytes);
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
              respond: (permit, call) => respond({ exchange, parameters, permit, call }),
              reject: (failure, headers) => reject(exchange, failure, headers),
            },
            deps,
          ),
      };
    });
}

const rejectInBody: Reject = ({ requestId }, failure, headers) => errorResponse(requestId, failure, headers);

/** Plain HTTP interface of the annotated rpcs. */
export interface Transcoder {
  /** Handles the request if a route matches its path and method. */
  readonly handle: Handler;
  /**
   * Returns the HTTP methods of a path; empty for an unknown path.
   *
   * @throws RpcError INVALID_REQUEST if the percent-encoding is malformed.
   */
  methodsOf(path: string): string[];
}

/**
 * Compiles the lookup of endpoints by path and method.
 *
 * @throws Error that names both rpcs if two of them claim the same paths.
 */
export function createTranscoder(endpoints: readonly Endpoint[]): Transcoder {
  const table = new RouteTable<Endpoint>();
  for (const endpoint of endpoints) {
    const { method, template, isStream } = endpoint.route;
    const { parent, name } = endpoint.served.desc;
    for (const httpMethod of method === "GET" && !isStream ? ["GET", "HEAD"] : [method]) {
      table.add(httpMethod, template, `${parent.typeName}.${name}`, endpoint);
    }
  }

  return {
    handle(exchange) {
      const match = table.find(exchange.path);
      const endpoint = match?.endpoints.get(exchange.method);
      endpoint?.handle(exchange, match!.parameters);
      return endpoint !== undefined;
    },
    methodsOf(path) {
      if (splitPath(path) === undefined) {
        throw new RpcError("INVALID_REQUEST", "The path has a malformed percent-encoding.");
      }
      return [...(table.find(path)?.endpoints.keys() ?? [])];
    },
  };
}

function compileRoute(
  served: ServedMethod,
  { template, responseField, body }: HttpRoute,
  caching: RpcCaching,
): Respond {
  const { input, output } = served.desc;
  const bind = compileRequestBinder(input, pathFieldsOf(template), body);
  const hasBody = body !== undefined;
  const encode = shareBytes(responseField === undefined ? jsonEncoder(output) : jsonFieldEncoder(responseField));
  return ({ exchange, parameters, permit, call }) => {
    const tag = caching.tagFor(call.caller);
    const cached = caching.findCached(exchange, tag);
    if (cached !== undefined) {
      return respondWith(cached, exchange, permit);
    }
    const createResponse = (message: object): HttpResponse => {
      const directives = caching.directivesFor(exchange, tag, message);
      const plain = served.plainReply?.(message);
      const body = directives.isNotModified ? noBody : encode(message);
      if (plain === undefined) {
        caching.store(exchange, tag, directives, body);
      }
      return respondWith({ directives, body }, exchange, permit, plain);
    };
    const toResponse = (message: object) => paceResponse(() => createResponse(message));
    if (hasBody) {
      return exchange
        .readBytes(maxBodyBytes, permit)
        .then((bytes) => served.invoke(bind(parameters, exchange.query, bytes.toString("utf8")), call))
        .then(toResponse);
    }
    const message = served.invoke(bind(parameters, exchange.query, undefined), call);
    return message instanceof Promise ? (message as Promise<object>).then(toResponse) : createResponse(message);
  };
}

/** Creates the response with its cache directives, or a 304; `plain` is the status and headers that the rpc sets. */
function respondWith(
  { directives, body }: CachedResponse,
  { requestId }: Exchange,
  permit: Permit,
  plain?: PlainReply,
): HttpResponse {
  const permitHeaders = directives.isImmutable ? noHeaders : permit.headers;
  if (directives.isNotModified) {
    return notModified(requestId, directives.headers, permitHeaders);
  }
  const rpcHeaders = plain?.headers === undefined ? noHeaders : Object.entries(plain.headers).flat();
  return jsonResponse(requestId, plain?.status ?? 200, body, [...directives.headers, ...permitHeaders, ...rpcHeaders]);
}

const noBody: HttpResponseBody = {};
const noHeaders: readonly string[] = [];

function compileStreamRoute(served: ServedMethod, route: HttpRoute, deps: ProtocolDeps): Respond {
  const bind = compileRequestBinder(served.desc.input, pathFieldsOf(route.template), route.body);
  const resume = compileResume(served.desc.input);
  const send = compileStream(served, route, deps);
  return async ({ exchange, parameters, permit, call }) => {
    const body = route.body === undefined ? undefined : await exchange.readBytes(maxBodyBytes, permit);
    const request = resume(bind(parameters, exchange.query, body?.toString("utf8")), exchange);
    await send(exchange, permit, served.invoke(request, call) as AsyncIterable<object>);
    return undefined;
  };
}
