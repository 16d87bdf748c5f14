/** Connect services in the form from which plain HTTP routes are compiled. */
import { create } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ContextValues,
  createConnectRouter,
  createRouterTransport,
  type Interceptor,
  type StreamResponse,
  type UnaryResponse,
} from "@connectrpc/connect";
import { AsyncLocalStorage } from "node:async_hooks";
import { Readable } from "node:stream";
import { FailureKindSchema } from "../../gen/gatehouse/errors/v1/errors_pb.js";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { RpcError, type Reason } from "../rpc/errors.js";
import type { Exchange } from "../rpc/exchange/exchange.js";
import { exchangeOf } from "../rpc/exchange/serve.js";
import type { Gate } from "../rpc/gate.js";
import type { Call, ServedMethod } from "../rpc/service.js";

/**
 * Converts Connect services to served services. An in-process transport of the library calls each function, so that
 * contexts, interceptors and errors work as usual. `ownHeaders` returns the response headers that a function set, as a
 * flat list of names and values; the returned gate starts an empty list for each request.
 */
export function serveRoutes(
  routes: (router: ConnectRouter) => void,
  interceptors: Interceptor[],
  contextValuesOf: (exchange: Exchange) => ContextValues | undefined,
  gate: Gate,
) {
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

  const recordingGate: Gate = {
    ...gate,
    admit(arrival, protocol, method) {
      headersOf.set(arrival as Exchange, []);
      return gate.admit(arrival, protocol, method);
    },
  };
  return {
    ownHeaders: (exchange: Exchange): string[] => headersOf.get(exchange) ?? [],
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
    gate: recordingGate,
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

/** HTTP status of each code, as google.rpc.Code documents it. */
const statuses: Readonly<Record<Code, number>> = {
  [Code.Canceled]: 499,
  [Code.Unknown]: 500,
  [Code.InvalidArgument]: 400,
  [Code.DeadlineExceeded]: 504,
  [Code.NotFound]: 404,
  [Code.AlreadyExists]: 409,
  [Code.PermissionDenied]: 403,
  [Code.ResourceExhausted]: 429,
  [Code.FailedPrecondition]: 400,
  [Code.Aborted]: 409,
  [Code.OutOfRange]: 400,
  [Code.Unimplemented]: 501,
  [Code.Internal]: 500,
  [Code.Unavailable]: 503,
  [Code.DataLoss]: 500,
  [Code.Unauthenticated]: 401,
};

/** Response headers that the metadata of an error must not set. */
const responseHeaderNames = /^(content-|transfer-|trailer|connect-|grpc-)/i;

/**
 * Error of a Connect handler. The reason is that of the `google.rpc.ErrorInfo` detail, or else the name of the code.
 */
export class ConnectRpcError extends RpcError {
  constructor(readonly error: ConnectError) {
    const [info] = error.findDetails(ErrorInfoSchema);
    super(
      (info?.reason ?? Code[error.code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase()) as Reason,
      error.rawMessage,
      undefined,
      [...error.metadata].filter(([name]) => !responseHeaderNames.test(name)).flat(),
      create(FailureKindSchema, { httpStatus: statuses[error.code], grpcCode: error.code as number }),
    );
  }
}
