/** Connect and gRPC-Web through the middleware of the Connect library, after the gate. */
import { Code, ConnectError, type ContextValues } from "@connectrpc/connect";
import { expressConnectMiddleware } from "@connectrpc/connect-express";
import type { NextFunction, Request, RequestHandler, Response } from "express";
import type { OutgoingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import { createConnectHandler, type ServeUnary } from "../rpc/connect/connect-handler.js";
import { encodeText } from "../rpc/connect/grpc-web-text.js";
import { checkMessage, readLibraryBody } from "../rpc/connect/library-body.js";
import { libraryHeaders, createCallError } from "../rpc/connect/library-handler.js";
import { connectRoutes, createLibraryCall, libraryOptions, type LibraryCall, valuesOf } from "../rpc/connect/routes.js";
import type { Exchange } from "../rpc/exchange/exchange.js";
import type { Http1Exchange } from "../rpc/exchange/http1-exchange.js";
import type { RpcMedia } from "../rpc/exchange/rpc-requests.js";
import type { ServeRpc } from "../rpc/exchange/rpc-requests.js";
import { serveExchange } from "../rpc/exchange/serve.js";
import { longTimeouts } from "../rpc/exchange/rpc-requests.js";
import type { Permit, ProtocolDeps } from "../rpc/gate.js";
import type { ServedMethod } from "../rpc/service.js";

/** Creates the middleware. Passes requests for paths of no rpc to the next handler. */
export function createConnectMiddleware(
  deps: ProtocolDeps,
  exchangeOf: (request: Request) => Http1Exchange,
): RequestHandler {
  const valuesByRequest = new WeakMap<object, ContextValues>();
  const middleware = expressConnectMiddleware({
    ...libraryOptions,
    routes: connectRoutes(deps),
    contextValues: (request) => valuesByRequest.get(request)!,
  });

  const serveByMiddleware = (
    exchange: Exchange,
    served: ServedMethod,
    media: RpcMedia,
    prepare: PrepareRequest,
  ): void => {
    // Express has added its own methods to both objects.
    const { request, response } = exchange as Http1Exchange & {
      readonly request: Request;
      readonly response: Response;
    };
    serveExchange(
      exchange,
      {
        protocol: media.protocol,
        method: served,
        async respond(permit, call) {
          const libraryCall = createLibraryCall(exchange.requestId, served, media);
          valuesByRequest.set(request, valuesOf(call.caller, libraryCall));
          await prepare(request, permit);
          longTimeouts(exchange).forEach((name) => Reflect.deleteProperty(request.headers, name));
          if (media.protocol !== "connect") {
            request.headers["content-type"] = `application/${media.protocol}+${media.format}`;
          }
          await respondReserving(
            { exchange: exchange as Http1Exchange, response, permit, media, libraryCall },
            (failed) =>
              // Called only if the middleware fails: paths of no rpc do not get here.
              middleware(request, response, failed as NextFunction),
          );
          return undefined;
        },
        reject: (failure, headers) => createCallError(exchange, failure, headers, media),
      },
      deps,
    );
  };
  const serveUnary: ServeUnary = (exchange, served, media, read) =>
    serveByMiddleware(exchange, served, media, async (request, permit) => {
      const message = checkMessage(served.desc, media.format, await read(permit));
      if (exchange.method === "GET") {
        request.url = withMessage(exchange, message);
      } else {
        request.headers["content-length"] = String(message.length);
        request.body = Readable.from([message]);
      }
    });
  const serveOther: ServeRpc = (exchange, served, media) =>
    serveByMiddleware(exchange, served, media, async (request, permit) => {
      if (exchange.method !== "GET") {
        request.body = await readLibraryBody(exchange, served, media, permit);
      }
    });
  const handle = createConnectHandler(deps, serveUnary, serveOther);

  return (request, _response, next) => {
    if (!handle(exchangeOf(request))) {
      next();
    }
  };
}

/** Prepares the request in the form that the library reads. */
type PrepareRequest = (request: Request, permit: Permit) => Promise<void>;

/** Returns the URL of a GET call with its message replaced. */
function withMessage({ path, query }: Exchange, message: Buffer): string {
  const parameters = new URLSearchParams(query);
  parameters.set("base64", "1");
  parameters.set("message", message.toString("base64url"));
  return `${path}?${parameters.toString()}`;
}

interface MeteredResponse {
  readonly exchange: Http1Exchange;
  readonly response: Response;
  readonly permit: Permit;
  readonly media: RpcMedia;
  readonly libraryCall: LibraryCall;
}

type Sent = (error?: Error | null) => void;

/**
 * Runs a library that writes the response, and reserves bytes for each piece until it is sent. Headers are delayed
 * until the first piece has its reservation, so that an error response is still possible. Resolves when the response is
 * sent or the client has disconnected.
 *
 * @throws RpcError if no bytes can be reserved for the first piece.
 */
async function respondReserving(
  { exchange, response, permit, media, libraryCall }: MeteredResponse,
  run: (failed: (error: unknown) => void) => void,
): Promise<void> {
  // Earlier handlers may have wrapped these methods.
  const write = response.write.bind(response) as (piece: Uint8Array, encoding: string, sent: Sent) => boolean;
  const end = response.end.bind(response) as () => Response;
  const writeHead = response.writeHead.bind(response);
  let head: { readonly status: number; readonly headers?: OutgoingHttpHeaders | undefined } | undefined;
  const start = (): void => {
    if (head !== undefined) {
      response.writeHead = writeHead;
      const headers = [...libraryHeaders(exchange, permit), ...flat(head.headers ?? {})];
      exchange.start(head.status, media.isText ? encodeText.headers(headers) : headers);
      head = undefined;
    }
  };
  await new Promise<void>((resolve, reject) => {
    const fail = (error: unknown): void => {
      Object.assign(response, { write, end, writeHead });
      reject(error as Error);
    };
    response.writeHead = (status: number, headers: unknown) => {
      head = { status, headers: headers as OutgoingHttpHeaders | undefined };
      return response;
    };
    response.write = (piece: Uint8Array, _encoding: unknown, done?: Sent) => {
      const bytes = media.isText ? encodeText.piece(piece) : piece;
      try {
        permit.reserveResponseBytes(bytes.length);
      } catch (error) {
        fail(error);
        // The library reports nothing for a response that was aborted.
        throw new ConnectError("The memory limit is reached.", Code.Aborted);
      }
      start();
      const sent: Sent = (error) => {
        permit.releaseResponseBytes(bytes.length);
        done?.(error);
      };
      return (write as (piece: Uint8Array, encoding: string, sent: typeof done) => boolean).call(
        response,
        bytes,
        "binary",
        sent,
      );
    };
    response.end = () => {
      permit.recordOutcome(libraryCall.failure);
      start();
      return end();
    };
    response.once("close", resolve);
    run(fail);
  });
}

function flat(headers: OutgoingHttpHeaders): string[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).flatMap((item) => (item === undefined ? [] : [name, String(item)])),
  );
}
