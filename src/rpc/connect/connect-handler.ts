/**
 * Serves the rpcs over Connect and gRPC-Web on HTTP/1.1, with the library's own codecs: standard protobuf JSON and
 * binary. The functions, the gate and the catalogue are those of every other protocol. The gate is asked before the
 * body is read, and told of the end when the response is closed, whatever the library made of the request.
 */
import {
  type Code,
  type ConnectRouter,
  ConnectError,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type ServiceImpl,
} from "@connectrpc/connect";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { expressConnectMiddleware } from "@connectrpc/connect-express";
import type { DescService } from "@bufbuild/protobuf";
import type { RequestHandler, Response } from "express";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { corsHeaders } from "../http/cors.js";
import { Failure } from "../errors.js";
import { requestDecoder } from "../codec/binary-decoder.js";
import { failureDetails } from "../failure-details.js";
import { type Arrival, explain, type ProtocolParts } from "../gate.js";
import { HttpArrival } from "../http/http-exchange.js";
import { failureHeaders, headerPairs } from "../http/http-reply.js";
import { parseJson } from "../codec/parse-json.js";
import { maxBodyBytes, readBytes } from "../http/read-body.js";
import type { Call, Caller, ServedMethod, ServedService } from "../service.js";
import { methodNotAllowed } from "../http/http-reply.js";

/** A request on its way through the library. */
interface Exchange {
  /** Undefined where the gate turned the request away. */
  readonly caller: Caller | undefined;
  /** Why the request is not answered; undefined once it is. */
  failure: Failure | undefined;
  /** Keeps what was thrown as the exchange's failure, and gives it as the library wants it. */
  fail(thrown: unknown): ConnectError;
}

const exchangeKey = createContextKey<Exchange | undefined>(undefined);

/** Express middleware that answers every rpc's path, and calls `next` for all others. */
export function createConnectHandler(parts: ProtocolParts): RequestHandler {
  const servable = parts.services.map(({ desc, methods }) => ({
    desc,
    methods: methods.filter(({ desc: { methodKind } }) => methodKind === "unary" || methodKind === "server_streaming"),
  }));
  const byPath = new Map(
    servable.flatMap(({ methods }) =>
      methods.map((method) => [`/${method.desc.parent.typeName}/${method.desc.name}`, method]),
    ),
  );
  const handle = expressConnectMiddleware({
    routes: (router) => servable.forEach((service) => register(router, service)),
    grpc: false,
    readMaxBytes: maxBodyBytes,
    contextValues: (request) => {
      const { exchange } = (request as IncomingMessage & { res: Response }).res.locals as { exchange: Exchange };
      return createContextValues().set(exchangeKey, exchange);
    },
  });
  return (request, response, next) => {
    const served = byPath.get(request.path);
    if (served === undefined) {
      next();
      return;
    }
    const contentType = request.headers["content-type"] ?? "";
    const exchange = enter(served, contentType, request, response, parts);
    response.locals["exchange"] = exchange;
    // What only the library can say in the protocol's own form it gets to say; all else is answered without a body.
    if (exchange.caller === undefined && /^application\/(?:proto|json)\b/.test(contentType)) {
      sendConnectError(response, toConnectError(exchange.failure!));
    } else if (request.method !== "POST") {
      throw (exchange.failure = methodNotAllowed(request.method, ["POST", "OPTIONS"]));
    } else if (!/^application\/(?:proto|json|connect\+|grpc-web)/.test(contentType)) {
      throw (exchange.failure = new Failure(
        "UNSUPPORTED_MEDIA_TYPE",
        "The Content-Type must be one of Connect or gRPC-Web, such as application/json.",
      ));
    } else {
      // The library makes a URL of it, and fails where that cannot be done.
      request.headers.host = "localhost";
      const check = /^application\/(proto|json)\b/.exec(contentType)?.[1] as keyof typeof checks | undefined;
      if (check === undefined || request.headers["content-encoding"] !== undefined) {
        handle(request, response, next);
        return;
      }
      // The library takes a body that somebody else has read, so it passes the same checks as all others.
      readBytes(request, maxBodyBytes)
        .then((bytes) => {
          request.body = checks[check](bytes, served);
          handle(request, response, next);
        })
        .catch((error: unknown) => sendConnectError(response, exchange.fail(error)));
    }
  };
}

/** Asks the gate, and tells it of the end when the response is closed. */
function enter(
  served: ServedMethod,
  contentType: string,
  request: IncomingMessage,
  response: Response,
  parts: ProtocolParts,
): Exchange {
  const { requestId } = response.locals as { requestId: string };
  const protocol: Arrival["protocol"] = contentType.startsWith("application/grpc-web") ? "grpc-web" : "connect";
  const fail = (thrown: unknown): Failure => explain(thrown, requestId, parts);
  const headers = ["X-Request-Id", requestId, ...corsHeaders];
  let caller: Caller | undefined;
  let failure: Failure | undefined;
  try {
    const admission = parts.gate.admit(new HttpArrival(requestId, protocol, request, served));
    headers.push(...admission.headers);
    caller = admission.caller;
    // What the library refuses by itself never gets to the function, which is the one to say that there is no failure.
    failure = new Failure("INVALID_REQUEST", `The request is not a valid ${served.desc.input.typeName}.`);
    response.once("close", () => parts.gate.settle(admission, exchange.failure));
  } catch (error) {
    failure = fail(error);
  }
  headerPairs(headers).forEach(([name, value]) => response.setHeader(name, value));
  const exchange: Exchange = {
    caller,
    failure,
    fail(thrown) {
      exchange.failure = fail(thrown);
      return toConnectError(exchange.failure);
    },
  };
  return exchange;
}

/** By format: a unary request's body as the library takes it, or the Failure that says what is wrong with it. */
const checks = {
  json(bytes: Buffer): object {
    const body = parseJson(bytes.toString("utf8"));
    if (typeof body !== "object" || body === null || Array.isArray(body)) {
      throw new Failure("INVALID_REQUEST", "The request body must be a JSON object.");
    }
    return body;
  },
  proto(bytes: Buffer, { desc }: ServedMethod): AsyncIterable<Uint8Array> {
    requestDecoder(desc.input)(bytes);
    return Readable.from([bytes]);
  },
};

/** Answers with an error as Connect has it, for a request that did not get as far as the library. */
function sendConnectError(response: Response, error: ConnectError): void {
  if (response.headersSent) {
    return;
  }
  error.metadata.forEach((value, name) => response.setHeader(name, value));
  response.setHeader("Content-Type", "application/json");
  response.status(codeToHttpStatus(error.code)).end(errorToJsonBytes(error, undefined));
}

function register(router: ConnectRouter, { desc, methods }: ServedService): void {
  const functions = methods.map((method) => [
    method.desc.localName,
    method.desc.methodKind === "unary" ? unary(method) : stream(method),
  ]);
  router.service(desc, Object.fromEntries(functions) as ServiceImpl<DescService>);
}

function unary(served: ServedMethod) {
  return async (request: object, context: HandlerContext): Promise<object> => {
    const exchange = context.values.get(exchangeKey)!;
    try {
      return await Promise.resolve(served.invoke(request, open(exchange, context)));
    } catch (error) {
      throw exchange.fail(error);
    }
  };
}

function stream(served: ServedMethod) {
  return async function* (request: object, context: HandlerContext): AsyncGenerator<object> {
    const exchange = context.values.get(exchangeKey)!;
    try {
      yield* served.invoke(request, open(exchange, context)) as AsyncIterable<object>;
    } catch (error) {
      throw exchange.fail(error);
    }
  };
}

/** The call as the function sees it. Throws where the gate turned the request away. */
function open(exchange: Exchange, { signal }: HandlerContext): Call {
  if (exchange.caller === undefined) {
    throw exchange.failure!;
  }
  exchange.failure = undefined;
  return { caller: exchange.caller, signal };
}

function toConnectError(failure: Failure): ConnectError {
  return new ConnectError(
    failure.message,
    // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- the catalogue holds the same numbers
    failure.kind.grpcCode as number as Code,
    headerPairs(failureHeaders(failure)),
    failureDetails(failure),
  );
}
