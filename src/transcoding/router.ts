/** Express routes for the plain HTTP endpoints. */
import { type IRoute, type NextFunction, type Request, type RequestHandler, type Response, Router } from "express";
import type { Http1Exchange } from "../rpc/exchange/http1-exchange.js";
import type { Endpoint } from "../rpc/http/transcoder.js";
import { fullNameOf } from "../rpc/service.js";
import { toExpressPath } from "./express-path.js";

/** Returns the exchange of a request; undefined if the request already has its response. */
export type ExchangeOf = (request: Request, response: Response, next: NextFunction) => Http1Exchange | undefined;

/**
 * Creates the router. Paths are matched literally, with one optional trailing slash. Requests without a route go to the
 * next handler.
 *
 * @param mayEndEmpty allows an empty field at the end of a path.
 * @throws Error that names both rpcs if two rpcs claim the same method and path.
 */
export function createTranscodingRouter(
  endpoints: readonly Endpoint[],
  exchangeOf: ExchangeOf,
  mayEndEmpty: boolean,
): Router {
  const router = Router({ caseSensitive: true });
  const sortedByRank = endpoints
    .map((endpoint) => ({ endpoint, ...toExpressPath(endpoint.route.template, mayEndEmpty) }))
    .sort((a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0));
  const owners = new Map<string, string>();
  const routes = new Map<string, IRoute>();
  for (const { endpoint, path, valuesOf } of sortedByRank) {
    const { method } = endpoint.route;
    const name = fullNameOf(endpoint.served.desc);
    const other = owners.get(`${method} ${path}`);
    if (other !== undefined) {
      throw new Error(`${method} ${path} of ${name} is ambiguous: ${other} has it too.`);
    }
    owners.set(`${method} ${path}`, name);
    const route = routes.get(path) ?? router.route(path);
    routes.set(path, route);
    const handle: RequestHandler = (request, response, next) => {
      // Express would also match `//` with `/`.
      if (path === "/" && request.path !== path) {
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
      throw new Error(`${name}: Express knows no method ${method}.`);
    }
    add.call(route, handle);
  }
  return router;
}
