/**
 * Serves the rpcs over Connect and gRPC-Web, with standard protobuf JSON and binary. Unary calls of Connect are answered
 * here; streams, gRPC-Web and compressed calls are handed on.
 */
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Failure } from "../errors.js";
import { maxBodyBytes } from "../exchange/body.js";
import {
  createCaching,
  forCallerAlone,
  notModified,
  type Recalled,
  type RpcCaching,
  type Told,
} from "../exchange/caching.js";
import { corsHeaders } from "../exchange/cors.js";
import type { Answer, Exchange, Handler } from "../exchange/exchange.js";
import { type RpcMedia, readRpcMedia } from "../exchange/media-type.js";
import { failureAnswer, methodNotAllowed } from "../exchange/reply.js";
import { methodsByPath, type ServeRpc } from "../exchange/rpc-paths.js";
import { serve } from "../exchange/serve.js";
import { answerInTurn } from "../exchange/turns.js";
import type { Lease, ProtocolParts } from "../gate.js";
import type { ServedMethod } from "../service.js";
import { unaryFailure } from "./connect-error.js";
import { compileForms, type Forms } from "./unary-forms.js";

type Format = RpcMedia["format"];

/**
 * Answers the paths of rpcs.
 *
 * @param serveOther serves streams, gRPC-Web and compressed calls.
 */
export function createConnectHandler(parts: ProtocolParts, serveOther: ServeRpc): Handler {
  const byPath = methodsByPath(parts.services);
  const compiled = new Map<ServedMethod, Compiled>();
  const cachingOf = createCaching(parts.stateTags, parts.keptAnswerBytes);
  for (const served of byPath.values()) {
    if (served.desc.methodKind === "unary") {
      compiled.set(served, { forms: compileForms(served.desc), caching: cachingOf(served) });
    }
  }

  return (exchange) => {
    const served = byPath.get(exchange.path);
    if (served === undefined) {
      return false;
    }
    const { forms, caching } = compiled.get(served) ?? {};
    const isRead = served.desc.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
    if (exchange.method === "GET" && isRead && forms !== undefined) {
      serveGet({ exchange, served, forms, caching }, parts, serveOther);
    } else if (exchange.method !== "POST") {
      const allowed = [...(isRead ? ["GET"] : []), "POST", "OPTIONS"];
      refuse({ exchange, served }, methodNotAllowed(exchange.method, allowed), parts);
    } else {
      servePost({ exchange, served, forms }, parts, serveOther);
    }
    return true;
  };
}

/** What is compiled of a unary rpc. */
interface Compiled {
  readonly forms: Forms;
  readonly caching: RpcCaching;
}

/** A call of an rpc. */
interface RpcCall {
  readonly exchange: Exchange;
  readonly served: ServedMethod;
}

interface UnaryCall extends RpcCall {
  readonly forms: Forms;
  /** Of a GET; caches keep nothing of a POST. */
  readonly caching?: RpcCaching | undefined;
}

function servePost(
  { exchange, served, forms }: RpcCall & { readonly forms: Forms | undefined },
  parts: ProtocolParts,
  serveOther: ServeRpc,
): void {
  const media = readRpcMedia(exchange.header("content-type"));
  const isUnary = served.desc.methodKind === "unary";
  if (media === undefined || (media.protocol === "connect" && media.isStream === isUnary)) {
    const wanted = isUnary ? "application/json" : "application/connect+json";
    const message = `The Content-Type must be one of Connect or gRPC-Web, such as ${wanted}.`;
    refuse({ exchange, served }, new Failure("UNSUPPORTED_MEDIA_TYPE", message), parts);
  } else if (media.isStream || forms === undefined || isCompressed(exchange.header("content-encoding"))) {
    serveOther(exchange, served, media);
  } else {
    const read = (lease: Lease): Promise<Buffer> => exchange.readBytes(maxBodyBytes, lease);
    serveUnary({ exchange, served, forms }, media.format, read, parts);
  }
}

function serveGet(call: UnaryCall, parts: ProtocolParts, serveOther: ServeRpc): void {
  const query = new URLSearchParams(call.exchange.query);
  const format = query.get("encoding");
  if (format !== "json" && format !== "proto") {
    refuse(call, new Failure("UNSUPPORTED_MEDIA_TYPE", "The parameter encoding must be json or proto."), parts);
  } else if (isCompressed(query.get("compression") ?? undefined)) {
    serveOther(call.exchange, call.served, { protocol: "connect", format, isStream: false, isText: false });
  } else {
    const message = query.get("message") ?? "";
    const bytes = query.get("base64") === "1" ? Buffer.from(message, "base64url") : Buffer.from(message);
    serveUnary(call, format, () => Promise.resolve(bytes), parts);
  }
}

/** @param read gives the request's message. */
function serveUnary(
  { exchange, served, forms, caching }: UnaryCall,
  format: Format,
  read: (lease: Lease) => Promise<Buffer>,
  parts: ProtocolParts,
): void {
  const { requestId } = exchange;
  const timeout = exchange.header("connect-timeout-ms");
  const timeoutMs = timeout !== undefined && /^\d{1,9}$/.test(timeout) ? Number(timeout) : undefined;
  const form = forms[format];
  serve(
    exchange,
    {
      protocol: "connect",
      method: served,
      timeoutMs,
      respond(lease, call) {
        if (timeout !== undefined && timeoutMs === undefined) {
          throw new Failure("INVALID_REQUEST", "The header connect-timeout-ms is up to nine digits.");
        }
        const headers = ["Content-Type", form.contentType, "X-Request-Id", requestId, ...corsHeaders];
        const answerTold = ({ told, body }: Recalled): Answer => {
          const ofRequest = told.isForGood ? [] : lease.headers;
          return told.isKnown
            ? notModified(requestId, told.headers, ofRequest)
            : { status: 200, headers: [...headers, ...told.headers, ...ofRequest], ...body };
        };
        const tag = caching?.tagFor(call.caller);
        const recalled = caching?.recall(exchange, tag);
        if (recalled !== undefined) {
          return answerTold(recalled);
        }
        const answer = (message: object): Answer => {
          const told = caching?.tell(exchange, tag, message) ?? toldToNobody;
          const body = told.isKnown ? {} : form.encode(message);
          caching?.keep(exchange, tag, told, body);
          return answerTold({ told, body });
        };
        return read(lease)
          .then((body) => served.invoke(form.decode(body), call))
          .then((message) => answerInTurn(() => answer(message)));
      },
      refuse: (failure, headers) =>
        unaryFailure(requestId, failure, caching === undefined ? headers : [...forCallerAlone, ...headers]),
    },
    parts,
  );
}

/** Nothing: an answer to POST is not kept, whoever says so. */
const toldToNobody: Told = { headers: [], isKnown: false, isForGood: false, etag: undefined };

/** A request that is of no protocol of rpcs is answered as plain HTTP is. */
function refuse({ exchange, served }: RpcCall, failure: Failure, parts: ProtocolParts): void {
  serve(
    exchange,
    {
      protocol: "connect",
      method: served,
      respond() {
        throw failure;
      },
      refuse: (reason, headers) => failureAnswer(exchange.requestId, reason, headers),
    },
    parts,
  );
}

function isCompressed(encoding: string | undefined): boolean {
  return encoding !== undefined && encoding !== "" && encoding !== "identity";
}
