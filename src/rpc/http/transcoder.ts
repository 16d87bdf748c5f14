/**
 * Serves annotated rpcs as plain HTTP with JSON. Each route is compiled at start-up: path template to matcher, request
 * to binder, response to encoder. It uses nothing of Express, so it can be called before Express or mounted in it.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Admission, explain, type ProtocolParts } from "../gate.js";
import { HttpArrival, HttpCall } from "./http-exchange.js";
import { sendFailure, sendJson, splitUrl } from "./http-reply.js";
import { type HttpRoute, readHttpRule } from "./http-rule.js";
import { jsonEncoder, jsonFieldEncoder } from "../codec/json-encoder.js";
import { pathFieldsOf } from "./path-template.js";
import { maxBodyBytes, readBody } from "./read-body.js";
import { compileRequestBinder, type RequestBinder } from "./request-binder.js";
import { createRouteTable, type RouteMatch, type RouteTable } from "./route-table.js";
import type { ServedMethod, ServedService } from "../service.js";

interface Route {
  readonly served: ServedMethod;
  readonly bind: RequestBinder;
  readonly encode: (response: object) => string;
  readonly hasBody: boolean;
}

/** Plain HTTP over the annotated rpcs. */
export interface Transcoder {
  /** Answers the request if a route has its path and method, otherwise calls `next`. */
  handle(request: IncomingMessage, response: ServerResponse, next: () => void): void;
  /**
   * The HTTP methods that a path has; empty for an unknown path.
   *
   * @throws Failure INVALID_REQUEST when its percent-encoding is malformed.
   */
  methodsOf(path: string): string[];
}

/**
 * Compiles the routes of all annotated rpcs.
 *
 * @throws Error that names both rpcs when two of them claim the same paths.
 */
export function createTranscoder(parts: ProtocolParts): Transcoder {
  const { gate, nextRequestId } = parts;
  const routes = compileRoutes(parts.services);

  /** The fallback answers what has no route, malformed paths included. */
  function findOrUndefined(path: string): RouteMatch<Route> | undefined {
    try {
      return routes.find(path);
    } catch {
      return undefined;
    }
  }

  function handle(request: IncomingMessage, response: ServerResponse, next: () => void): void {
    const { path, query } = splitUrl(request);
    const match = findOrUndefined(path);
    const route = match?.endpoints.get(request.method ?? "GET");
    if (match === undefined || route === undefined) {
      next();
      return;
    }
    const requestId = nextRequestId();
    let admission: Admission | undefined;
    try {
      admission = gate.admit(new HttpArrival(requestId, "http", request, route.served));
      const call = new HttpCall(admission.caller, response);
      if (route.hasBody) {
        readBody(request, maxBodyBytes)
          .then((body) => route.served.invoke(route.bind(match.parameters, query, body), call))
          .then(reply)
          .catch(fail);
        return;
      }
      const answer = route.served.invoke(route.bind(match.parameters, query, undefined), call);
      if (answer instanceof Promise) {
        answer.then(reply).catch(fail);
      } else {
        reply(answer);
      }
    } catch (error) {
      fail(error);
    }

    function reply(message: object): void {
      const body = route!.encode(message);
      const plain = route!.served.plainReply?.(message);
      sendJson(response, requestId, plain?.status ?? 200, body, [
        ...admission!.headers,
        ...(plain?.headers === undefined ? [] : Object.entries(plain.headers).flat()),
      ]);
      gate.settle(admission!);
    }

    function fail(error: unknown): void {
      const failure = explain(error, requestId, parts);
      if (admission !== undefined) {
        gate.settle(admission, failure);
      }
      if (!response.headersSent) {
        sendFailure(response, requestId, failure);
      }
    }
  }

  return { handle, methodsOf: (path) => [...(routes.find(path)?.endpoints.keys() ?? [])] };
}

function compileRoutes(services: readonly ServedService[]): RouteTable<Route> {
  const routes = createRouteTable<Route>();
  for (const served of services.flatMap(({ methods }) => methods)) {
    const rule = readHttpRule(served.desc);
    if (rule === undefined) {
      continue;
    }
    const owner = `${served.desc.parent.typeName}.${served.desc.name}`;
    const route = compileRoute(served, rule);
    routes.add(rule.method, rule.template, owner, route);
    if (rule.method === "GET") {
      routes.add("HEAD", rule.template, owner, route);
    }
  }
  return routes;
}

function compileRoute(served: ServedMethod, { template, responseField, hasBody }: HttpRoute): Route {
  const { input, output } = served.desc;
  return {
    served,
    bind: compileRequestBinder(input, pathFieldsOf(template), hasBody),
    encode: responseField === undefined ? jsonEncoder(output) : jsonFieldEncoder(responseField),
    hasBody,
  };
}
