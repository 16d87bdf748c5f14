/**
 * Serving of gRPC. Unary calls use the compiled codecs, with one frame in and one frame out. Another handler serves
 * streams and compressed calls.
 */
import { requestDecoder } from "../codec/request-rules.js";
import { RpcError } from "../errors.js";
import type { HttpResponse, Exchange, Handler } from "../exchange/exchange.js";
import { readRpcMedia } from "../exchange/media-type.js";
import { errorResponse, methodNotAllowed } from "../exchange/responses.js";
import { serveExchange, type ExchangeHandling } from "../exchange/serve.js";
import { paceResponse } from "../exchange/pacing.js";
import { methodsByPath, type ServeRpc } from "../exchange/rpc-paths.js";
import type { ProtocolDeps } from "../gate.js";
import type { ServedMethod } from "../service.js";
import { firstPrefix, maxMessageBytes, prefixBytes, readOnlyMessage } from "../exchange/envelope.js";
import { type Frame, frameEncoder } from "./frame.js";
import { statusFields } from "../grpc-status.js";
import { parseGrpcTimeout } from "../exchange/timeouts.js";

const contentType = ["Content-Type", "application/grpc+proto"];
const okHeaders = [...contentType, "grpc-accept-encoding", "identity,gzip,br"];
const okTrailers = ["grpc-status", "0"];

interface Unary {
  readonly decode: (bytes: Buffer) => object;
  readonly encode: (message: object) => Frame;
}

/**
 * Creates the handler of every request with a gRPC content type.
 *
 * @param serveOther serves streams and compressed calls.
 */
export function createGrpcHandler(deps: ProtocolDeps, serveOther: ServeRpc): Handler {
  const byPath = methodsByPath(deps.services);
  const compiled = new Map<ServedMethod, Unary>();
  for (const served of byPath.values()) {
    const { methodKind, input, output } = served.desc;
    if (methodKind === "unary") {
      compiled.set(served, { decode: requestDecoder(input), encode: frameEncoder(output) });
    }
  }

  return (exchange) => {
    const media = readRpcMedia(exchange.header("content-type"));
    if (media?.protocol !== "grpc") {
      return false;
    }
    const served = byPath.get(exchange.path);
    const problem = findProblem(exchange);
    if (problem !== undefined) {
      const handling = createRejection(served, problem, (failure) => errorResponse(exchange.requestId, failure));
      serveExchange(exchange, handling, deps);
      return true;
    }
    const unary = served && compiled.get(served);
    if (served === undefined) {
      const noSuchRpc = new RpcError("METHOD_NOT_ALLOWED", "There is no rpc at this path.");
      serveExchange(
        exchange,
        createRejection(undefined, noSuchRpc, (failure) => trailersOnly(exchange, failure)),
        deps,
      );
    } else if (unary === undefined || isCompressed(exchange)) {
      serveOther(exchange, served, media);
    } else {
      serveUnary(exchange, served, unary);
    }
    return true;
  };

  function serveUnary(exchange: Exchange, served: ServedMethod, { decode, encode }: Unary): void {
    const timeout = exchange.header("grpc-timeout");
    const timeoutMs = timeout === undefined ? undefined : parseGrpcTimeout(timeout);
    const createResponse = (message: object): HttpResponse => {
      const { bytes, isShared } = encode(message);
      return { status: 200, headers: okHeaders, body: bytes, isShared, trailers: okTrailers };
    };
    serveExchange(
      exchange,
      {
        protocol: "grpc",
        method: served,
        timeoutMs,
        respond(permit, call) {
          if (timeout !== undefined && timeoutMs === undefined) {
            throw new RpcError(
              "INVALID_REQUEST",
              "The header grpc-timeout must be at most eight digits and a unit, such as 5S.",
            );
          }
          return exchange
            .readBytes(prefixBytes + maxMessageBytes, permit, firstPrefix)
            .then((body) => served.invoke(decode(readOnlyMessage(body)), call))
            .then((message) => paceResponse(() => createResponse(message)));
        },
        reject: (failure) => trailersOnly(exchange, failure),
      },
      deps,
    );
  }
}

/** Returns the error if a request with a gRPC content type is not valid gRPC. */
function findProblem({ isHttp2, method }: Exchange): RpcError | undefined {
  if (method !== "POST") {
    return methodNotAllowed(method, ["POST", "OPTIONS"]);
  }
  return isHttp2 ? undefined : new RpcError("UNSUPPORTED_MEDIA_TYPE", "gRPC needs HTTP/2.");
}

function isCompressed(exchange: Exchange): boolean {
  return (exchange.header("grpc-encoding") ?? "identity") !== "identity";
}

function createRejection(
  served: ServedMethod | undefined,
  failure: RpcError,
  reject: ExchangeHandling["reject"],
): ExchangeHandling {
  return {
    protocol: "grpc",
    method: served,
    respond() {
      throw failure;
    },
    reject,
  };
}

/** Returns a response that consists of an error status. */
function trailersOnly({ requestId }: Exchange, failure: RpcError): HttpResponse {
  return { status: 200, headers: contentType, trailers: statusFields(failure, requestId) };
}
