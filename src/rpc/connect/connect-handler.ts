/**
 * Connect over standard protobuf JSON and binary. This module serves unary calls itself. It passes streams, compressed
 * calls and gRPC-Web to another handler.
 */
import { create, type DescMethod, toJsonString } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { binaryEncoder } from "../codec/binary-encoder.js";
import { readJsonBytes } from "../codec/json-request.js";
import { requestDecoder } from "../codec/request-rules.js";
import { RpcError } from "../errors.js";
import { createCaching, type Reply, shareBytes } from "../exchange/caching.js";
import type { HttpResponse, Exchange, Handler } from "../exchange/exchange.js";
import { paceResponse } from "../exchange/pacing.js";
import { corsHeaders, methodNotAllowed, notModified, privateHeaders } from "../exchange/responses.js";
import {
  isCompressed,
  maxRequestBytes,
  methodsByPath,
  readRpcMedia,
  type RpcMedia,
  type ServeRpc,
} from "../exchange/rpc-requests.js";
import { rejectExchange, serveExchange } from "../exchange/serve.js";
import type { Permit, ProtocolDeps } from "../gate.js";
import type { ServedMethod } from "../service.js";
import { unaryError } from "./connect-error.js";
import { type GetQuery, readGetQuery } from "./get-query.js";

/** Serves a call of a unary rpc; `read` returns the request message. */
export type ServeUnary = (
  exchange: Exchange,
  served: ServedMethod,
  media: RpcMedia,
  read: (permit: Permit) => Promise<Buffer>,
) => void;

/** Creates the handler of unary calls, which uses compiled codecs. */
export function createUnaryHandler(deps: ProtocolDeps): ServeUnary {
  const cachingOf = createCaching(deps);
  const compiled = new Map(
    deps.services
      .flatMap(({ methods }) => methods)
      .filter(({ desc }) => desc.methodKind === "unary")
      .map((served) => [served, { codecs: compileCodecs(served.desc), respondCached: cachingOf(served) }]),
  );

  return (exchange, served, { format }, read) => {
    const { codecs, respondCached } = compiled.get(served)!;
    const { decode, encode } = codecs[format];
    const { requestId } = exchange;
    // Responses to POST are not cacheable.
    const isCacheable = exchange.method === "GET";
    serveExchange(
      exchange,
      {
        protocol: "connect",
        method: served,
        respond(permit, call) {
          const invoke = (): Promise<object> => read(permit).then((body) => served.invoke(decode(body), call));
          const createResponse = ({ headers, isImmutable, body }: Omit<Reply, "etag">): HttpResponse => {
            const added = isImmutable ? headers : [...headers, ...permit.headers];
            return body === undefined
              ? notModified(requestId, added)
              : {
                  status: 200,
                  headers: [
                    "Content-Type",
                    `application/${format}`,
                    "X-Request-Id",
                    requestId,
                    ...corsHeaders,
                    ...added,
                  ],
                  body: body.body,
                  isShared: body.isShared,
                };
          };
          return isCacheable
            ? respondCached(exchange, call.caller, { invoke, encode, createResponse })
            : invoke().then((message) =>
                paceResponse(() => createResponse({ headers: [], isImmutable: false, body: encode(message) })),
              );
        },
        reject: (failure, headers) =>
          unaryError(requestId, failure, isCacheable ? [...privateHeaders, ...headers] : headers),
      },
      deps,
    );
  };
}

function compileCodecs({ input, output }: DescMethod) {
  return {
    json: {
      decode: (body: Buffer) => readJsonBytes(input, body),
      encode: shareBytes((message) => toJsonString(output, create(output, message as never))),
    },
    proto: { decode: requestDecoder(input), encode: shareBytes(binaryEncoder(output)) },
  };
}

/**
 * Creates the handler of rpc paths, which selects the protocol and rejects requests of an unknown one.
 *
 * @param serveUnary serves unary Connect calls.
 * @param serveOther serves streams, gRPC-Web and compressed calls.
 */
export function createConnectHandler(deps: ProtocolDeps, serveUnary: ServeUnary, serveOther: ServeRpc): Handler {
  const byPath = methodsByPath(deps.services);
  return (exchange) => {
    const served = byPath.get(exchange.path);
    if (served === undefined) {
      return false;
    }
    const isUnary = served.desc.methodKind === "unary";
    const isRead = served.desc.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
    const failure =
      exchange.method === "GET" && isRead && isUnary
        ? serveGet(exchange, served)
        : exchange.method === "POST"
          ? servePost(exchange, served)
          : methodNotAllowed(exchange.method, [...(isRead ? ["GET"] : []), "POST", "OPTIONS"]);
    if (failure !== undefined) {
      rejectExchange(exchange, failure, { protocol: "connect", method: served }, deps);
    }
    return true;
  };

  function servePost(exchange: Exchange, served: ServedMethod): RpcError | undefined {
    const media = readRpcMedia(exchange.header("content-type"));
    const isUnary = served.desc.methodKind === "unary";
    if (media === undefined || (media.protocol === "connect" && media.isStream === isUnary)) {
      const expected = isUnary ? "application/json" : "application/connect+json";
      const message = `The Content-Type must be one of Connect or gRPC-Web, such as ${expected}.`;
      return new RpcError("UNSUPPORTED_MEDIA_TYPE", message);
    }
    if (media.isStream || !isUnary || isCompressed(exchange.header("content-encoding"))) {
      serveOther(exchange, served, media);
    } else {
      serveUnary(exchange, served, media, (permit) => exchange.readBytes(maxRequestBytes(served.desc), permit));
    }
    return undefined;
  }

  function serveGet(exchange: Exchange, served: ServedMethod): RpcError | undefined {
    let query: GetQuery;
    try {
      query = readGetQuery(exchange.query);
    } catch (error) {
      return error as RpcError;
    }
    const { encoding: format, compression, message } = query;
    if (format !== "json" && format !== "proto") {
      return new RpcError("UNSUPPORTED_MEDIA_TYPE", "The parameter encoding must be json or proto.");
    }
    const media: RpcMedia = { protocol: "connect", format, isStream: false, isText: false };
    if (isCompressed(compression)) {
      serveOther(exchange, served, media);
    } else {
      serveUnary(exchange, served, media, () => Promise.resolve(message));
    }
    return undefined;
  }
}
