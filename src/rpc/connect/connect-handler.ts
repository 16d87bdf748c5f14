/**
 * Connect and gRPC-Web over standard protobuf JSON and binary. This module serves unary Connect calls itself. It passes
 * streams, gRPC-Web and compressed calls to another handler.
 */
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { RpcError } from "../errors.js";
import { maxBodyBytes } from "../exchange/body.js";
import {
  createCaching,
  privateHeaders,
  notModified,
  type CachedResponse,
  type RpcCaching,
  type CacheDirectives,
} from "../exchange/caching.js";
import { corsHeaders } from "../exchange/cors.js";
import type { HttpResponse, Exchange, Handler } from "../exchange/exchange.js";
import { type RpcMedia, readRpcMedia } from "../exchange/media-type.js";
import { errorResponse, methodNotAllowed } from "../exchange/responses.js";
import { methodsByPath, type ServeRpc } from "../exchange/rpc-paths.js";
import { serveExchange } from "../exchange/serve.js";
import { parseConnectTimeout } from "../exchange/timeouts.js";
import { paceResponse } from "../exchange/pacing.js";
import type { Permit, ProtocolDeps } from "../gate.js";
import type { ServedMethod } from "../service.js";
import { unaryError } from "./connect-error.js";
import { compileUnaryCodecs, type UnaryCodec, type UnaryCodecs } from "./unary-codecs.js";

/** Serves a call of a unary rpc; `read` returns the request message. */
export type ServeUnary = (
  exchange: Exchange,
  served: ServedMethod,
  media: RpcMedia,
  read: (permit: Permit) => Promise<Buffer>,
) => void;

/** Creates the handler of unary calls, which uses compiled codecs. */
export function createUnaryHandler(deps: ProtocolDeps): ServeUnary {
  const cachingOf = createCaching(deps.stateTags, deps.maxCacheBytes);
  const compiled = new Map<ServedMethod, CompiledRpc>();
  for (const served of deps.services.flatMap(({ methods }) => methods)) {
    if (served.desc.methodKind === "unary") {
      compiled.set(served, { codecs: compileUnaryCodecs(served.desc), caching: cachingOf(served) });
    }
  }
  return (exchange, served, { format }, read) => {
    const { codecs, caching } = compiled.get(served)!;
    // Responses to POST are not cacheable.
    const cacheable = exchange.method === "GET" ? caching : undefined;
    serveUnary({ exchange, served, codec: codecs[format], caching: cacheable }, read, deps);
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
    if (exchange.method === "GET" && isRead && isUnary) {
      serveGet({ exchange, served }, deps, serveUnary, serveOther);
    } else if (exchange.method !== "POST") {
      const allowed = [...(isRead ? ["GET"] : []), "POST", "OPTIONS"];
      sendError({ exchange, served }, methodNotAllowed(exchange.method, allowed), deps);
    } else {
      servePost({ exchange, served }, deps, serveUnary, serveOther);
    }
    return true;
  };
}

/** CompiledRpc parts of a unary rpc. */
interface CompiledRpc {
  readonly codecs: UnaryCodecs;
  readonly caching: RpcCaching;
}

interface RpcCall {
  readonly exchange: Exchange;
  readonly served: ServedMethod;
}

interface UnaryCall extends RpcCall {
  readonly codec: UnaryCodec;
  readonly caching: RpcCaching | undefined;
}

function servePost(
  { exchange, served }: RpcCall,
  deps: ProtocolDeps,
  serveUnary: ServeUnary,
  serveOther: ServeRpc,
): void {
  const media = readRpcMedia(exchange.header("content-type"));
  const isUnary = served.desc.methodKind === "unary";
  if (media === undefined || (media.protocol === "connect" && media.isStream === isUnary)) {
    const expected = isUnary ? "application/json" : "application/connect+json";
    const message = `The Content-Type must be one of Connect or gRPC-Web, such as ${expected}.`;
    sendError({ exchange, served }, new RpcError("UNSUPPORTED_MEDIA_TYPE", message), deps);
  } else if (media.isStream || !isUnary || isCompressed(exchange.header("content-encoding"))) {
    serveOther(exchange, served, media);
  } else {
    serveUnary(exchange, served, media, (permit) => exchange.readBytes(maxBodyBytes, permit));
  }
}

function serveGet(call: RpcCall, deps: ProtocolDeps, serveUnary: ServeUnary, serveOther: ServeRpc): void {
  const { exchange, served } = call;
  const query = new URLSearchParams(exchange.query);
  const format = query.get("encoding");
  if (format !== "json" && format !== "proto") {
    sendError(call, new RpcError("UNSUPPORTED_MEDIA_TYPE", "The parameter encoding must be json or proto."), deps);
    return;
  }
  const media: RpcMedia = { protocol: "connect", format, isStream: false, isText: false };
  if (isCompressed(query.get("compression") ?? undefined)) {
    serveOther(exchange, served, media);
  } else {
    const message = query.get("message") ?? "";
    const bytes = query.get("base64") === "1" ? Buffer.from(message, "base64url") : Buffer.from(message);
    serveUnary(exchange, served, media, () => Promise.resolve(bytes));
  }
}

function serveUnary(
  { exchange, served, codec, caching }: UnaryCall,
  read: (permit: Permit) => Promise<Buffer>,
  deps: ProtocolDeps,
): void {
  const { requestId } = exchange;
  const timeout = exchange.header("connect-timeout-ms");
  const timeoutMs = timeout === undefined ? undefined : parseConnectTimeout(timeout);
  serveExchange(
    exchange,
    {
      protocol: "connect",
      method: served,
      timeoutMs,
      respond(permit, call) {
        if (timeout !== undefined && timeoutMs === undefined) {
          throw new RpcError("INVALID_REQUEST", "The header connect-timeout-ms must be at most ten digits.");
        }
        const headers = ["Content-Type", codec.contentType, "X-Request-Id", requestId, ...corsHeaders];
        const respondWith = ({ directives, body }: CachedResponse): HttpResponse => {
          const permitHeaders = directives.isImmutable ? [] : permit.headers;
          return directives.isNotModified
            ? notModified(requestId, directives.headers, permitHeaders)
            : { status: 200, headers: [...headers, ...directives.headers, ...permitHeaders], ...body };
        };
        const tag = caching?.tagFor(call.caller);
        const cached = caching?.findCached(exchange, tag);
        if (cached !== undefined) {
          return respondWith(cached);
        }
        const respond = (message: object): HttpResponse => {
          const directives = caching?.directivesFor(exchange, tag, message) ?? noDirectives;
          const body = directives.isNotModified ? {} : codec.encode(message);
          caching?.store(exchange, tag, directives, body);
          return respondWith({ directives, body });
        };
        return read(permit)
          .then((body) => served.invoke(codec.decode(body), call))
          .then((message) => paceResponse(() => respond(message)));
      },
      reject: (failure, headers) =>
        unaryError(requestId, failure, caching === undefined ? headers : [...privateHeaders, ...headers]),
    },
    deps,
  );
}

/** Empty cache directives: responses to POST are not cacheable. */
const noDirectives: CacheDirectives = { headers: [], isNotModified: false, isImmutable: false, etag: undefined };

/** Sends a plain HTTP error for a request of an unknown protocol. */
function sendError({ exchange, served }: RpcCall, failure: RpcError, deps: ProtocolDeps): void {
  serveExchange(
    exchange,
    {
      protocol: "connect",
      method: served,
      respond() {
        throw failure;
      },
      reject: (reason, headers) => errorResponse(exchange.requestId, reason, headers),
    },
    deps,
  );
}

function isCompressed(encoding: string | undefined): boolean {
  return encoding !== undefined && encoding !== "" && encoding !== "identity";
}
