/** The Express application behind the compiled routes: the JSON-RPC entry point, and the answer to everything unknown. */
import express, { type ErrorRequestHandler, type Express } from "express";
import { Failure, toFailure } from "../errors.js";
import type { Gate } from "./gate.js";
import { HttpArrival } from "./http-exchange.js";
import { sendFailure, sendJson, splitUrl } from "./http-reply.js";
import type { JsonRpcEntry } from "./json-rpc.js";
import { readBody } from "./read-body.js";
import { maxBodyBytes } from "./transcoder.js";

/** What the application needs. */
export interface WebAppParts {
  readonly gate: Gate;
  readonly jsonRpc: JsonRpcEntry;
  readonly nextRequestId: () => string;
  readonly onInternalError: (error: unknown, requestId: string) => void;
  /** HTTP methods that the compiled routes have at a path. */
  readonly methodsOf: (path: string) => string[];
}

/** Builds the application. */
export function createWebApp(parts: WebAppParts): Express {
  const { gate, jsonRpc, nextRequestId, onInternalError, methodsOf } = parts;
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.set("query parser", false);

  app.use((request, response, next) => {
    response.locals.requestId = nextRequestId();
    const arrival = new HttpArrival(request, undefined);
    response.once("close", () => gate.settle(arrival));
    gate.admit(arrival);
    next();
  });

  app.post("/", async (request, response) => {
    const answer = await jsonRpc(await readBody(request, maxBodyBytes));
    if (answer === undefined) {
      response.status(204).end();
    } else {
      sendJson(response, requestIdOf(response), 200, answer);
    }
  });

  app.use((request) => {
    const { path } = splitUrl(request);
    const methods = new Set([...methodsOf(path), ...(path === "/" ? ["POST"] : [])]);
    if (methods.size === 0) {
      throw new Failure("NOT_FOUND", "There is nothing at this path.");
    }
    throw new MethodNotAllowed(request.method, [...methods, "OPTIONS"].join(", "));
  });

  const answerError: ErrorRequestHandler = (error: unknown, _request, response, _next) => {
    const failure = toFailure(error);
    if (failure !== error) {
      onInternalError(error, requestIdOf(response));
    }
    if (!response.headersSent) {
      const headers =
        failure instanceof MethodNotAllowed
          ? ["Allow", failure.allow]
          : failure.reason === "PAYLOAD_TOO_LARGE"
            ? ["Connection", "close"]
            : [];
      sendFailure(response, requestIdOf(response), failure, headers);
    }
  };
  app.use(answerError);
  return app;
}

class MethodNotAllowed extends Failure {
  constructor(
    method: string,
    readonly allow: string,
  ) {
    super("METHOD_NOT_ALLOWED", `${method} is not allowed here; allowed: ${allow}.`);
  }
}

function requestIdOf(response: { locals: Record<string, unknown> }): string {
  return response.locals.requestId as string;
}
