/** Connect and gRPC-Web through the middleware of the Connect library, after the gate. */
import { Code, ConnectError, type ContextValues } from "@connectrpc/connect";
import { expressConnectMiddleware } from "@connectrpc/connect-express";
import type { Request, RequestHandler, Response } from "express";
import type { OutgoingHttpHeaders } from "node:http";
import { PassThrough, Readable } from "node:stream";
import { createConnectHandler, type ServeUnary } from "../rpc/connect/connect-handler.js";
import {
  checkMessage,
  readLibraryRequest,
  sendLibraryResponse,
  serveLibraryCall,
} from "../rpc/connect/library-handler.js";
import { writeGetQuery } from "../rpc/connect/get-query.js";
import { connectRoutes, libraryOptions } from "../rpc/connect/routes.js";
import type { Exchange } from "../rpc/exchange/exchange.js";
import type { Http1Exchange } from "../rpc/exchange/http1-exchange.js";
import { type RpcMedia, type ServeRpc, timeoutHeaders } from "../rpc/exchange/rpc-requests.js";
import type { Permit, ProtocolDeps } from "../rpc/gate.js";
import type { Call, ServedMethod } from "../rpc/service.js";

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
    // Express has added its own methods.
    const { request } = exchange as Http1Exchange & { readonly request: Request };
    serveLibraryCall(exchange, served, media, deps, async (permit, call, values) => {
      valuesByRequest.set(request, values);
      const omittedHeaders = await prepare(request, permit, call);
      omittedHeaders.forEach((name) => Reflect.deleteProperty(request.headers, name));
      if (media.protocol !== "connect") {
        request.headers["content-type"] = `application/${media.protocol}+${media.format}`;
      }
      const out = new LibraryResponse();
      exchange.onClose(() => out.abort());
      try {
        middleware(request, out as unknown as Response, () => undefined);
        await out.started();
        await sendLibraryResponse(
          exchange,
          served,
          { status: out.status, header: out.header, body: out.iterator({ destroyOnReturn: false }) },
          media,
          permit,
        );
      } catch (error) {
        if (!exchange.isClosed) {
          throw error;
        }
      } finally {
        out.abort();
      }
    });
  };
  const serveUnary: ServeUnary = (exchange, served, media, read) =>
    serveByMiddleware(exchange, served, media, async (request, permit) => {
      const message = checkMessage(served.desc, media.format, await read(permit));
      if (exchange.method === "GET") {
        request.url = `${exchange.path}?${writeGetQuery(exchange.query, message)}`;
      } else {
        request.headers["content-length"] = String(message.length);
        request.body = Readable.from([message]);
      }
      return timeoutHeaders;
    });
  const serveOther: ServeRpc = (exchange, served, media) =>
    serveByMiddleware(exchange, served, media, async (request, permit, call) => {
      const { body, query, omittedHeaders } = await readLibraryRequest(exchange, served, media, permit, call);
      if (exchange.method === "GET") {
        request.url = `${exchange.path}?${query}`;
      } else {
        request.body = body;
      }
      return omittedHeaders;
    });
  const handle = createConnectHandler(deps, serveUnary, serveOther);

  return (request, _response, next) => {
    if (!handle(exchangeOf(request))) {
      next();
    }
  };
}

/** Prepares a request for the library, and returns the names of headers that do not apply to the prepared request. */
type PrepareRequest = (request: Request, permit: Permit, call: Call) => Promise<readonly string[]>;

/** Response of the library, in the form in which its middleware writes it. The node reads and sends it. */
class LibraryResponse extends PassThrough {
  headersSent = false;
  status = 200;
  readonly header = new Headers();

  constructor() {
    super({ highWaterMark: 1 });
    this.on("error", () => undefined);
  }

  writeHead(status: number, headers: OutgoingHttpHeaders = {}): this {
    this.headersSent = true;
    this.status = status;
    for (const [name, value] of Object.entries(headers)) {
      [value].flat().forEach((item) => this.header.append(name, String(item)));
    }
    this.emit("head");
    return this;
  }

  /** Resolves when the headers are written, or the response is aborted. */
  async started(): Promise<void> {
    await new Promise<void>((resolve) => this.once("head", resolve).once("close", resolve));
  }

  /** Stops the library. It reports nothing for a response that was aborted. */
  abort(): void {
    this.destroy(new ConnectError("The response has ended.", Code.Aborted));
  }
}
