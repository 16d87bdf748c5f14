/**
 * Serves the rpcs over Connect and gRPC-Web on HTTP/1.1, with the library's own codecs: standard protobuf JSON and
 * binary. The functions, the gate and the catalogue are those of every other protocol.
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
import { corsHeaders } from "../edge/cors.js";
import { Failure, toFailure } from "../errors.js";
import { failureDetails } from "./failure-details.js";
import type { Arrival, Gate } from "./gate.js";
import { HttpArrival } from "./http-exchange.js";
import { failureHeaders } from "./http-reply.js";
import { parseJson } from "./parse-json.js";
import { maxBodyBytes, readBody } from "./read-body.js";
import type { Call, ServedMethod, ServedService } from "./service.js";
import { methodNotAllowed } from "./web-app.js";

/** What the handler needs. */
export interface ConnectParts {
  readonly services: readonly ServedService[];
  readonly gate: Gate;
  /** Hears of every exception that the caller is told nothing about. */
  readonly onInternalError: (error: unknown, requestId: string) => void;
}

/** The request, and the name that it has in the log. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly requestId: string;
}

const exchangeKey = createContextKey<Exchange | undefined>(undefined);

/** Express middleware that answers every rpc's path, and calls `next` for all others. */
export function createConnectHandler(parts: ConnectParts): RequestHandler {
  const servable = parts.services.map(({ desc, methods }) => ({
    desc,
    methods: methods.filter(({ desc: { methodKind } }) => methodKind === "unary" || methodKind === "server_streaming"),
  }));
  const paths = new Set(
    servable.flatMap(({ methods }) => methods.map(({ desc }) => `/${desc.parent.typeName}/${desc.name}`)),
  );
  const handle = expressConnectMiddleware({
    routes: (router) => servable.forEach((service) => register(router, service, parts)),
    grpc: false,
    readMaxBytes: maxBodyBytes,
    contextValues: (request) => {
      const { requestId } = (request as IncomingMessage & { res: Response }).res.locals as { requestId: string };
      return createContextValues().set(exchangeKey, { request, requestId });
    },
  });
  return (request, response, next) => {
    if (!paths.has(request.path)) {
      next();
      return;
    }
    // The library answers these two without a body.
    if (request.method !== "POST") {
      throw methodNotAllowed(request.method, ["POST", "OPTIONS"]);
    }
    if (!/^application\/(?:proto|json|connect\+|grpc-web)/.test(request.headers["content-type"] ?? "")) {
      throw new Failure(
        "UNSUPPORTED_MEDIA_TYPE",
        "The Content-Type must be one of Connect or gRPC-Web, such as application/json.",
      );
    }
    response.setHeader("X-Request-Id", (response.locals as { requestId: string }).requestId);
    for (let i = 0; i < corsHeaders.length; i += 2) {
      response.setHeader(corsHeaders[i]!, corsHeaders[i + 1]!);
    }
    // The library takes JSON that somebody else has parsed, so its texts pass the same checks as all others.
    if (/^application\/json\b/.test(request.headers["content-type"] ?? "") && !request.headers["content-encoding"]) {
      readBody(request, maxBodyBytes)
        .then(parseObject)
        .then((body) => {
          request.body = body;
          handle(request, response, next);
        })
        .catch((error: unknown) => sendConnectError(response, toFailure(error)));
    } else {
      handle(request, response, next);
    }
  };
}

function parseObject(text: string): object {
  const body = parseJson(text);
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new Failure("INVALID_REQUEST", "The request body must be a JSON object.");
  }
  return body;
}

/** Answers with an error as Connect has it, for a request that did not get as far as the library. */
function sendConnectError(response: Response, failure: Failure): void {
  if (response.headersSent) {
    return;
  }
  const error = toConnectError(failure);
  const headers = failureHeaders(failure);
  for (let i = 0; i < headers.length; i += 2) {
    response.setHeader(headers[i]!, headers[i + 1]!);
  }
  response.setHeader("Content-Type", "application/json");
  response.status(codeToHttpStatus(error.code)).end(errorToJsonBytes(error, undefined));
}

function register(router: ConnectRouter, { desc, methods }: ServedService, parts: ConnectParts): void {
  const functions = methods.map((method) => [
    method.desc.localName,
    method.desc.methodKind === "unary" ? unary(method, parts) : stream(method, parts),
  ]);
  router.service(desc, Object.fromEntries(functions) as ServiceImpl<DescService>);
}

function unary(served: ServedMethod, parts: ConnectParts) {
  return async (request: object, context: HandlerContext): Promise<object> => {
    const exchange = open(served, context, parts);
    try {
      const answer: object = await Promise.resolve(served.invoke(request, exchange.call));
      exchange.settle();
      return answer;
    } catch (error) {
      throw exchange.fail(error);
    }
  };
}

function stream(served: ServedMethod, parts: ConnectParts) {
  return async function* (request: object, context: HandlerContext): AsyncGenerator<object> {
    const exchange = open(served, context, parts);
    let failure: ConnectError | undefined;
    try {
      yield* served.invoke(request, exchange.call) as AsyncIterable<object>;
    } catch (error) {
      failure = exchange.fail(error);
      throw failure;
    } finally {
      // Also when the caller went away, which ends the generator here.
      if (failure === undefined) {
        exchange.settle();
      }
    }
  };
}

/** Asks the gate, and says how the call is ended. Throws a ConnectError when the gate turns it away. */
function open(served: ServedMethod, context: HandlerContext, { gate, onInternalError }: ConnectParts) {
  const { request, requestId } = context.values.get(exchangeKey)!;
  try {
    const protocol = context.protocolName as Arrival["protocol"];
    const admission = gate.admit(new HttpArrival(requestId, protocol, request, served));
    for (let i = 0; i < admission.headers.length; i += 2) {
      context.responseHeader.set(admission.headers[i]!, admission.headers[i + 1]!);
    }
    const call: Call = { caller: admission.caller, signal: context.signal };
    return {
      call,
      settle: () => gate.settle(admission),
      fail(error: unknown): ConnectError {
        const failure = toFailure(error);
        if (failure !== error) {
          onInternalError(error, requestId);
        }
        gate.settle(admission, failure);
        return toConnectError(failure);
      },
    };
  } catch (error) {
    throw toConnectError(toFailure(error));
  }
}

function toConnectError(failure: Failure): ConnectError {
  const headers: Record<string, string> = {};
  const list = failureHeaders(failure);
  for (let i = 0; i < list.length; i += 2) {
    headers[list[i]!] = list[i + 1]!;
  }
  // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- the catalogue holds the same numbers
  return new ConnectError(failure.message, failure.kind.grpcCode as Code, headers, failureDetails(failure));
}
