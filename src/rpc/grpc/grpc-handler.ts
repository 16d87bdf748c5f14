/**
 * Serving of gRPC. Unary calls use the compiled codecs, with one frame in and one frame out. Another handler serves
 * streams and compressed calls.
 */
import { binaryEncoder } from "../codec/binary-encoder.js";
import { requestDecoder } from "../codec/request-rules.js";
import { RpcError } from "../errors.js";
import { shareBytes } from "../exchange/caching.js";
import type { HttpResponse, Handler } from "../exchange/exchange.js";
import { paceResponse } from "../exchange/pacing.js";
import { methodNotAllowed } from "../exchange/responses.js";
import {
  firstPrefix,
  maxMessageBytes,
  methodsByPath,
  prefixBytes,
  readOnlyMessage,
  readRpcMedia,
  readTimeout,
  type ServeRpc,
  writeEnvelope,
} from "../exchange/rpc-requests.js";
import { rejectExchange, serveExchange } from "../exchange/serve.js";
import type { ProtocolDeps } from "../gate.js";
import { statusFields } from "../grpc-status.js";
import type { ServedMethod } from "../service.js";

const contentType = ["Content-Type", "application/grpc+proto"];
const okHeaders = [...contentType, "grpc-accept-encoding", "identity,gzip,br"];
const okTrailers = ["grpc-status", "0"];

/**
 * Creates the handler of every request with a gRPC content type.
 *
 * @param serveOther serves streams and compressed calls.
 */
export function createGrpcHandler(deps: ProtocolDeps, serveOther: ServeRpc): Handler {
  const byPath = methodsByPath(deps.services);
  const compiled = new Map(
    [...byPath.values()]
      .filter(({ desc }) => desc.methodKind === "unary")
      .map((served) => [served, compileUnary(served)]),
  );

  return (exchange) => {
    const media = readRpcMedia(exchange.header("content-type"));
    if (media?.protocol !== "grpc") {
      return false;
    }
    const { method, isHttp2, path, requestId } = exchange;
    const served = byPath.get(path);
    const handling = { protocol: "grpc", method: served } as const;
    const reject = (failure: RpcError): HttpResponse => ({
      status: 200,
      headers: contentType,
      trailers: statusFields(failure, requestId),
    });
    if (method !== "POST") {
      rejectExchange(exchange, methodNotAllowed(method, ["POST", "OPTIONS"]), handling, deps);
    } else if (!isHttp2) {
      rejectExchange(exchange, new RpcError("UNSUPPORTED_MEDIA_TYPE", "gRPC needs HTTP/2."), handling, deps);
    } else if (served === undefined) {
      const failure = new RpcError("METHOD_NOT_ALLOWED", "There is no rpc at this path.");
      rejectExchange(exchange, failure, { ...handling, reject }, deps);
    } else {
      const callUnary = compiled.get(served);
      if (callUnary === undefined || (exchange.header("grpc-encoding") ?? "identity") !== "identity") {
        serveOther(exchange, served, media);
        return true;
      }
      serveExchange(
        exchange,
        // Without a spread, which takes 5 µs here.
        {
          protocol: "grpc",
          method: served,
          reject,
          timeoutOf: () => readTimeout(exchange, "grpc-timeout"),
          respond: (permit, call) =>
            exchange
              .readBytes(prefixBytes + maxMessageBytes, permit, firstPrefix)
              .then((body) => callUnary.invoke(body, call))
              .then((message) => paceResponse(() => callUnary.createResponse(message))),
        },
        deps,
      );
    }
    return true;
  };
}

function compileUnary({ desc: { input, output }, invoke }: ServedMethod) {
  const decode = requestDecoder(input);
  const encode = binaryEncoder(output);
  const encodeFrame = shareBytes((message) => writeEnvelope(0, encode(message)));
  return {
    invoke: (body: Buffer, call: Parameters<typeof invoke>[1]) => invoke(decode(readOnlyMessage(body)), call),
    createResponse(message: object): HttpResponse {
      const { body, isShared } = encodeFrame(message);
      return { status: 200, headers: okHeaders, body, isShared, trailers: okTrailers };
    },
  };
}
