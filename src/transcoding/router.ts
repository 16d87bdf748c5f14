/** A route of Express for each plain route. */
import { type IRoute, type NextFunction, type Request, type RequestHandler, type Response, Router } from "express";
import type { Http1Exchange } from "../rpc/exchange/http1-exchange.js";
import type { Endpoint } from "../rpc/http/transcoder.js";
import { toExpressPath } from "./express-path.js";

/** The exchange of a request; undefined where the request has been answered. */
export type ExchangeOf = (request: Request, response: Response, next: NextFunction) => Http1Exchange | undefined;

/** How paths are matched. */
export interface Matching {
  /** A field at the end of a path may be empty. */
  readonly mayEndEmpty: boolean;
}

/**
 * Builds the router. Paths are compared as they are written, and one trailing slash is tolerated; what no route has is
 * handed on.
 *
 * @throws Error when two rpcs claim the same method and path; it names both.
 */
export function createTranscodingRouter(
  endpoints: readonly Endpoint[],
  exchangeOf: ExchangeOf,
  { mayEndEmpty }: Matching,
): Router {
  const router = Router({ caseSensitive: true });
  const found = endpoints
    .map((endpoint) => ({ endpoint, ...toExpressPath(endpoint.route.template, mayEndEmpty) }))
    .sort((a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0));
  const owners = new Map<string, Endpoint>();
  const routes = new Map<string, IRoute>();
  for (const { endpoint, path, valuesOf } of found) {
    const { method } = endpoint.route;
    const other = owners.get(`${method} ${path}`);
    if (other !== undefined) {
      throw new Error(`${method} ${path} of ${nameOf(endpoint)} is ambiguous: ${nameOf(other)} has it too.`);
    }
    owners.set(`${method} ${path}`, endpoint);
    const route = routes.get(path) ?? router.route(path);
    routes.set(path, route);
    const handle: RequestHandler = (request, response, next) => {
      // Express would give a stream to HEAD as well, and takes // for /.
      if ((request.method === "HEAD" && endpoint.route.isStream) || (path === "/" && request.path !== path)) {
        next();
        return;
      }
      const exchange = exchangeOf(request, response, next);
      if (exchange !== undefined) {
        endpoint.handle(exchange, valuesOf(request.params));
      }
    };
    const add = (route as unknown as Record<string, ((handler: RequestHandler) => void) | undefined>)[
      method.toLowerCase()
    ];
    if (add === undefined) {
      throw new Error(`${nameOf(endpoint)}: Express knows no method ${method}.`);
    }
    add.call(route, handle);
  }
  return router;
}

function nameOf({ served: { desc } }: Endpoint): string {
  return `${desc.parent.typeName}.${desc.name}`;
}
