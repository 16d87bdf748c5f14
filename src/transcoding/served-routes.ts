/** Connect services in the form from which plain HTTP routes are compiled. */
import {
  ConnectError,
  type ConnectRouter,
  type ContextValues,
  createConnectRouter,
  createRouterTransport,
} from "@connectrpc/connect";
import type { Interceptor, StreamResponse, UnaryResponse } from "@connectrpc/connect";
import { AsyncLocalStorage } from "node:async_hooks";
import { Readable } from "node:stream";
import type { Exchange } from "../rpc/exchange/exchange.js";
import { exchangeOf } from "../rpc/exchange/serve.js";
import type { Gate } from "../rpc/gate.js";
import type { Call, ServedMethod, ServedService } from "../rpc/service.js";
import { ConnectRpcError } from "./connect-failure.js";

interface RoutesDeps {
  readonly routes: (router: ConnectRouter) => void;
  readonly interceptors: Interceptor[];
  readonly contextValuesOf: (exchange: Exchange) => ContextValues | undefined;
  readonly gate: Gate;
}

/**
 * Converts Connect services to served services. An in-process transport of the library calls each function, so that
 * contexts, interceptors and errors work as usual. `ownHeaders` returns the response headers that a function set, as a
 * flat list of names and values; the returned gate starts an empty list for each request.
 */
export function serveRoutes({ routes, interceptors, contextValuesOf, gate }: RoutesDeps): {
  services: ServedService[];
  gate: Gate;
  ownHeaders: (exchange: Exchange) => string[];
} {
  const router = createConnectRouter();
  routes(router);
  // The transport drops context values, as if the call crossed a network.
  const values = new AsyncLocalStorage<ContextValues | undefined>();
  const withValues: Interceptor = (next) => (call) =>
    next({ ...call, contextValues: values.getStore() ?? call.contextValues });
  const transport = createRouterTransport(routes, { router: { interceptors: [withValues, ...interceptors] } });
  const headersOf = new WeakMap<Exchange, string[]>();

  async function callUnary(desc: ServedMethod["desc"], request: object, call: Call): Promise<object> {
    const exchange = exchangeOf(call);
    const response = await values
      .run(contextValuesOf(exchange), () =>
        transport.unary(desc as never, call.signal, undefined, requestHeaders(exchange), request as never),
      )
      .catch(throwRpcError);
    recordHeaders(exchange, response);
    return response.message as object;
  }

  async function* callStream(desc: ServedMethod["desc"], request: object, call: Call): AsyncGenerator<object> {
    const exchange = exchangeOf(call);
    try {
      const response = await values.run(contextValuesOf(exchange), () =>
        transport.stream(
          ...([desc, call.signal, undefined, requestHeaders(exchange)] as [never, AbortSignal, undefined, Headers]),
          Readable.from([request]),
        ),
      );
      recordHeaders(exchange, response);
      yield* response.message as AsyncIterable<object>;
    } catch (error) {
      throwRpcError(error);
    }
  }

  function recordHeaders(exchange: Exchange, { header }: UnaryResponse | StreamResponse): void {
    const recorded = headersOf.get(exchange)!;
    header.forEach((value, name) => {
      if (!/^(content-|transfer-|accept-|connect-)/i.test(name)) {
        recorded.push(name, value);
      }
    });
  }

  return {
    ownHeaders: (exchange) => headersOf.get(exchange) ?? [],
    services: [...new Set(router.handlers.map(({ service }) => service))].map((desc) => ({
      desc,
      methods: router.handlers
        .filter(({ service }) => service === desc)
        .map(({ method }): ServedMethod => {
          const isUnary = method.methodKind === "unary";
          return {
            desc: method,
            invoke: (request, call) => (isUnary ? callUnary(method, request, call) : callStream(method, request, call)),
            ...{ plainReply: undefined, beforeBody: undefined, isProbe: false, identifiesCaller: false },
          };
        }),
    })),
    gate: {
      ...gate,
      admit(arrival, protocol, method) {
        headersOf.set(arrival as Exchange, []);
        return gate.admit(arrival, protocol, method);
      },
    },
  };
}

function requestHeaders(exchange: Exchange): Headers {
  const headers = new Headers();
  for (const [name, value] of exchange.headerEntries()) {
    // Headers that describe the body's transport do not belong to the call.
    if (!/^(content-|transfer-|accept|connection$|host$|connect-|te$|trailer$|upgrade$)/i.test(name)) {
      headers.append(name, value);
    }
  }
  return headers;
}

function throwRpcError(error: unknown): never {
  throw new ConnectRpcError(ConnectError.from(error));
}
