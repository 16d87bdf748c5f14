/** All protocols over one list of services: what the node serves on its ports. */
import type { RequestListener } from "node:http";
import type { TlsCredentials } from "../../base/crypto/certificate.js";
import { createLazyConnect } from "../connect/lazy-connect.js";
import { createApiDocs } from "../describe/api-docs.js";
import { commentOf } from "../describe/comments.js";
import type { DocumentInfo } from "../describe/openapi.js";
import { describeOpenRpc } from "../describe/openrpc.js";
import type { Exchange, Handler } from "../exchange/exchange.js";
import type { Http1Exchange } from "../exchange/http1-exchange.js";
import { createMount, type Mount } from "../exchange/mount.js";
import { createRequestIds } from "../exchange/request-ids.js";
import type { ProtocolDeps } from "../gate.js";
import { createGrpcHandler } from "../grpc/grpc-handler.js";
import { createPageServer, type Pages, type PageServer } from "../http/pages.js";
import { compileEndpoints, createTranscoder, type Endpoint } from "../http/transcoder.js";
import { createJsonRpcEntry } from "../json-rpc/json-rpc.js";
import { nameMethods } from "../json-rpc/named-methods.js";
import type { AnswerNodeCall } from "../json-rpc/node-call-envelope.js";
import type { McpDeps } from "../mcp/mcp-server.js";
import type { RpcListener } from "../port/listen.js";
import { createPort } from "../port/port.js";
import {
  chainHandlers,
  createJsonRpcHandler,
  createNotFoundHandler,
  createPageHandler,
  createPreflightHandler,
} from "./handler-chain.js";

export interface RpcServerDeps extends ProtocolDeps {
  /** The node-call interface of existing clients. */
  readonly nodeCall: AnswerNodeCall;
  /** What descriptions of the interface say of it. */
  readonly info: DocumentInfo;
  /** Documents beside those that describe the interface. */
  readonly pages?: Pages;
  /** As of a port. */
  readonly connectionAgeMs?: number | undefined;
}

/** What answers requests, one handler for each kind of them; servers of HTTP have them in an order. */
export interface ProtocolHandlers {
  readonly preflight: Handler;
  readonly grpc: Handler;
  /** The plain routes. */
  readonly plain: Handler;
  readonly jsonRpc: Handler;
  readonly connect: Handler;
  /** Documents. */
  readonly pages: Handler;
  /** What is nobody's. */
  readonly last: (exchange: Exchange) => void;
}

/** What an application that is built later is made of. */
export interface ApplicationDeps extends Mount {
  readonly protocol: ProtocolDeps;
  readonly handlers: ProtocolHandlers;
  /** The plain routes, one by one. */
  readonly endpoints: readonly Endpoint[];
  /** Where documents are. */
  readonly pagePaths: readonly string[];
}

/** An application that answers HTTP/1.1, whoever took the request. */
export interface Application {
  /** Answers a request that came by the port. */
  handle(exchange: Http1Exchange): void;
  /** Answers a request that another server took. */
  readonly listener: RequestListener;
}

export interface RpcServerOptions<A extends Application> {
  /** With it, the port speaks TLS and nothing else. */
  readonly tls?: TlsCredentials | undefined;
  /** Builds the application, when the first request needs it. */
  readonly buildApplication: (deps: ApplicationDeps) => Promise<A>;
  /** `compiled` answers before the application what it knows; `express` leaves all of HTTP/1.1 to the application. */
  readonly edge: "compiled" | "express";
}

/** The server of the public port. */
export interface RpcServer<A extends Application> extends RpcListener {
  /** The application, which drains with the port, whoever takes requests for it. */
  application(): Promise<A>;
}

/**
 * Builds the server of the public port, not listening yet.
 *
 * @throws Error when the annotations contradict each other; it names the rpcs.
 */
export function createRpcServer<A extends Application>(
  deps: RpcServerDeps,
  options: RpcServerOptions<A>,
): RpcServer<A> {
  const { tls, buildApplication, edge } = options;
  const nextRequestId = createRequestIds();
  const mount = createMount({ ...deps, nextRequestId });
  const endpoints = compileEndpoints(deps);
  const pages = createPageServer({ ...createApiDocs(deps.services, deps.info, commentOf), ...deps.pages });
  const handlers = createHandlers(deps, endpoints, pages, toApplication);
  const { preflight, grpc, plain, jsonRpc, connect, pages: page, last } = handlers;
  const whole = chainHandlers([preflight, grpc, plain, jsonRpc, connect, page], last, deps);
  const compiled = chainHandlers([preflight, grpc, plain, jsonRpc, connect], toApplication, deps);
  const http1 = edge === "express" ? toApplication : compiled;

  let loaded: A | undefined;
  let loading: Promise<A> | undefined;
  async function application(): Promise<A> {
    const applicationParts = { ...mount, protocol: deps, handlers, endpoints, pagePaths: pages.paths };
    loading ??= buildApplication(applicationParts).catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return (loaded = await loading);
  }
  function toApplication(exchange: Exchange): void {
    const given = exchange as Http1Exchange;
    if (loaded !== undefined) {
      loaded.handle(given);
      return;
    }
    application()
      .then((built) => (given.isClosed ? undefined : built.handle(given)))
      .catch((error: unknown) => {
        deps.onInternalError(error, given.requestId);
        given.abort();
      });
  }

  const handle = (exchange: Exchange): void => (exchange.isHttp2 ? whole(exchange) : http1(exchange));
  const port = createPort({ ...deps, handle, nextRequestId, tls });
  return {
    ...port,
    application,
    async drain(graceMs) {
      await Promise.all([port.drain(graceMs), mount.drain(graceMs)]);
    },
  };
}

function createHandlers(
  deps: RpcServerDeps,
  endpoints: readonly Endpoint[],
  pages: PageServer,
  toApplication: (exchange: Exchange) => void,
): ProtocolHandlers {
  const transcoder = createTranscoder(endpoints);
  const methods = nameMethods(deps.services);
  let discovered: string | undefined;
  const discover = (): string => (discovered ??= describeOpenRpc(methods, deps.info, commentOf));
  const connect = createLazyConnect(deps, toApplication);
  const methodsOf = (path: string): string[] => [
    ...new Set([
      ...transcoder.methodsOf(path),
      ...(pages.has(path) ? ["GET", "HEAD"] : []),
      ...(path === "/" ? ["POST"] : []),
    ]),
  ];
  return {
    preflight: createPreflightHandler(deps),
    grpc: createGrpcHandler(deps, connect.serveByLibrary),
    plain: transcoder.handle,
    jsonRpc: createJsonRpcHandler(createJsonRpcEntry({ ...deps, methods, discover }), deps),
    connect: connect.handle,
    pages: createPageHandler(pages, deps),
    last: createNotFoundHandler(methodsOf, deps),
  };
}

/**
 * Builds a server for gRPC alone.
 *
 * @param tls with it, both ends prove their identities by TLS, and callers have theirs.
 */
export function createGrpcOnlyServer(deps: ProtocolDeps, tls?: TlsCredentials): RpcListener {
  const handle = chainHandlers(
    [createGrpcHandler(deps, createLazyConnect(deps).serveByLibrary)],
    createNotFoundHandler(() => [], deps),
    deps,
  );
  return createPort({ handle, gate: deps.gate, nextRequestId: createRequestIds(), tls, isMutual: tls !== undefined });
}

export type McpPortDeps = ProtocolDeps & Pick<McpDeps, "resources" | "info">;

/** Builds a server of tools for assistants. Its library is loaded here: a node without it starts a fifth faster. */
export async function createMcpPort(deps: McpPortDeps): Promise<RpcListener> {
  const { createMcpServer } = await import("../mcp/mcp-server.js");
  return createMcpServer({
    ...deps,
    nextRequestId: createRequestIds(),
    methods: nameMethods(deps.services),
    commentOf,
  });
}
