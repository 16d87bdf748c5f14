/**
 * The Express application behind the compiled routes: Connect and gRPC-Web, the JSON-RPC entry point, and the answer to
 * everything unknown.
 */
import express, { type ErrorRequestHandler, type Express, type RequestHandler, type Response } from "express";
import { Failure } from "../errors.js";
import { type Admission, explain, type ProtocolParts } from "../gate.js";
import { HttpArrival, HttpCall } from "../http/http-exchange.js";
import { methodNotAllowed, sendFailure, sendJson, splitUrl } from "../http/http-reply.js";
import type { JsonRpcEntry } from "../json-rpc/json-rpc.js";
import type { JsonRpcRequest } from "../json-rpc/request.js";
import type { PageServer } from "../http/pages.js";
import { maxBodyBytes, readBody } from "../http/read-body.js";

export interface WebAppParts extends Omit<ProtocolParts, "services"> {
  /** Serves Connect and gRPC-Web; it asks the gate itself, since it alone knows the rpc. */
  readonly connect: RequestHandler;
  readonly jsonRpc: JsonRpcEntry;
  readonly pages: PageServer;
  /** HTTP methods that the compiled routes have at a path. */
  readonly methodsOf: (path: string) => string[];
}

interface Locals {
  requestId: string;
  arrival?: HttpArrival;
  admission?: Admission;
}

/** What the application keeps with a request. */
function localsOf(response: Response): Locals {
  return response.locals as Locals;
}

export function createWebApp(parts: WebAppParts): Express {
  const { gate, connect, jsonRpc, pages, nextRequestId, methodsOf } = parts;
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.set("query parser", false);

  app.use((_request, response, next) => {
    localsOf(response).requestId = nextRequestId();
    next();
  });

  app.use(connect);

  app.use((request, response, next) => {
    const locals = localsOf(response);
    const protocol = request.method === "POST" && request.path === "/" ? "json-rpc" : "http";
    locals.arrival = new HttpArrival(locals.requestId, protocol, request, undefined);
    locals.admission = gate.admit(locals.arrival);
    next();
  });

  app.post("/", async (request, response) => {
    const { requestId, admission, arrival } = localsOf(response);
    const call = new HttpCall(admission!.caller, response);
    const body = await readBody(request, maxBodyBytes);
    const given: JsonRpcRequest = { body, request, arrival: arrival!, call };
    const answer = await jsonRpc(given);
    gate.settle(admission!, given.failure);
    if (answer === undefined) {
      response.status(204).end();
    } else {
      sendJson(response, requestId, 200, answer, admission!.headers);
    }
  });

  app.use((request, response, next) => {
    if (!pages.has(request.path) || (request.method !== "GET" && request.method !== "HEAD")) {
      next();
      return;
    }
    const { requestId, admission } = localsOf(response);
    pages.send(request.path, response, ["X-Request-Id", requestId, ...admission!.headers]);
    gate.settle(admission!);
  });

  app.use((request) => {
    const { path } = splitUrl(request);
    const methods = new Set([
      ...methodsOf(path),
      ...(pages.has(path) ? ["GET", "HEAD"] : []),
      ...(path === "/" ? ["POST"] : []),
    ]);
    if (methods.size === 0) {
      throw new Failure("NOT_FOUND", "There is nothing at this path.");
    }
    throw methodNotAllowed(request.method, [...methods, "OPTIONS"]);
  });

  const answerError: ErrorRequestHandler = (error: unknown, _request, response, _next) => {
    const { requestId, admission } = localsOf(response);
    const failure = explain(error, requestId, parts);
    if (admission !== undefined) {
      gate.settle(admission, failure);
    }
    if (!response.headersSent) {
      sendFailure(response, requestId, failure);
    }
  };
  app.use(answerError);
  return app;
}
