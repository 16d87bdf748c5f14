/** Servers that offer the same list of services over every protocol, on the node's ports. */
import type { RequestListener } from "node:http";
import type { TlsCredentials } from "../../base/crypto/certificate.js";
import { createLazyConnect } from "../connect/lazy-connect.js";
import { createApiDocs } from "../describe/api-docs.js";
import type { DocumentInfo } from "../describe/openapi.js";
import { describeOpenRpc } from "../describe/openrpc.js";
import { createRequestIds, type Exchange } from "../exchange/exchange.js";
import type { Http1Exchange } from "../exchange/http1-exchange.js";
import { createMount, type Mount } from "../exchange/mount.js";
import { createLazyHandler } from "../exchange/serve.js";
import type { ProtocolDeps } from "../gate.js";
import { createGrpcHandlers } from "../grpc/grpc-handler.js";
import { createPageServer, type Pages, type PageServer } from "../http/pages.js";
import { compileEndpoints, createTranscoder, type Endpoint } from "../http/transcoder.js";
import { createJsonRpcEntry, type HandleNodeCall } from "../json-rpc/json-rpc.js";
import { nameMethods } from "../json-rpc/named-methods.js";
import type { McpDeps } from "../mcp/mcp-server.js";
import type { RpcListener } from "../port/listen.js";
import { createPort } from "../port/port.js";
import {
  chainHandlers,
  createFrontHandler,
  createJsonRpcHandler,
  createNotFoundHandler,
  createPageHandler,
  createPreflightHandler,
} from "./handler-chain.js";

export interface RpcServerDeps extends ProtocolDeps {
  /** Node-call interface for existing clients. */
  readonly nodeCall: HandleNodeCall;
  readonly info: DocumentInfo;
  readonly pages?: Pages;
  /** Age limit of connections, as in `PortDeps`. */
  readonly connectionAgeMs?: number | undefined;
  /** Time limit of idle connections, as in `PortDeps`. */
  readonly idleTimeoutMs?: number | undefined;
}

/** Dependencies of an application that is built later. Its handlers are those of the protocols. */
export interface ApplicationDeps extends Mount {
  readonly protocol: ProtocolDeps;
  readonly handlers: ReturnType<typeof createHandlers>;
  readonly endpoints: readonly Endpoint[];
  readonly pagePaths: readonly string[];
}

/** Application that responds to HTTP/1.1 requests of the node's port or of another server. */
export interface Application {
  /** Handles a request that arrived at the node's port. */
  handle(exchange: Http1Exchange): void;
  /** Handles a request that another server accepted. */
  readonly listener: RequestListener;
}

export interface RpcServerOptions<A extends Application> {
  /** TLS credentials; the port then serves only TLS. */
  readonly tls?: TlsCredentials | undefined;
  /** Builds the application, when the first request needs it. */
  readonly buildApplication: (deps: ApplicationDeps) => Promise<A>;
  /**
   * Handling of HTTP/1.1. With `compiled` the node's handlers run before the application. With `express` the
   * application handles every request.
   */
  readonly edge: "compiled" | "express";
}

export interface RpcServer<A extends Application> extends RpcListener {
  /** Returns the application. Requests that other servers pass to the application drain together with the port. */
  application(): Promise<A>;
}

/**
 * Creates the server of the public port, without listening.
 *
 * @throws Error that names the rpcs if their annotations conflict.
 */
export function createRpcServer<A extends Application>(
  deps: RpcServerDeps,
  { tls, buildApplication, edge }: RpcServerOptions<A>,
): RpcServer<A> {
  const nextRequestId = createRequestIds();
  const mount = createMount({ ...deps, nextRequestId });
  const endpoints = compileEndpoints(deps);
  const pages = createPageServer({ ...createApiDocs(deps.services, deps.info), ...deps.pages });
  const handlers = createHandlers(deps, endpoints, pages, passToApplication);
  const { preflight, grpc, grpcWeb, front, plain, jsonRpc, connect, pages: page, fallback } = handlers;
  const chain = chainHandlers([preflight, grpc, grpcWeb, front, plain, jsonRpc, connect, page], fallback, deps);
  const compiled = chainHandlers([preflight, grpc, grpcWeb, front, plain, jsonRpc, connect], passToApplication, deps);
  const http1 = edge === "express" ? passToApplication : compiled;

  const application = createLazyHandler(
    () => buildApplication({ ...mount, protocol: deps, handlers, endpoints, pagePaths: pages.paths }),
    deps,
  );
  function passToApplication(exchange: Exchange): void {
    application.handle(exchange, (built) => built.handle(exchange as Http1Exchange));
  }

  const handle = (exchange: Exchange): void => (exchange.isHttp2 ? chain(exchange) : http1(exchange));
  const port = createPort({ ...deps, handle, nextRequestId, tls });
  return {
    ...port,
    application: application.get,
    async drain(graceMs) {
      await Promise.all([port.drain(graceMs), mount.drain(graceMs)]);
    },
  };
}

function createHandlers(
  deps: RpcServerDeps,
  endpoints: readonly Endpoint[],
  pages: PageServer,
  passToApplication: (exchange: Exchange) => void,
) {
  const transcoder = createTranscoder(endpoints);
  const methods = nameMethods(deps.services);
  let openRpc: string | undefined;
  const discover = (): string => (openRpc ??= describeOpenRpc(methods, deps.info));
  const connect = createLazyConnect(deps, passToApplication);
  const methodsOf = (path: string): string[] => [
    ...new Set([
      ...transcoder.methodsOf(path),
      ...(pages.has(path) ? ["GET", "HEAD"] : []),
      ...(path === "/" ? ["POST"] : []),
    ]),
  ];
  return {
    preflight: createPreflightHandler(deps),
    ...createGrpcHandlers(deps, connect.serveByLibrary),
    front: createFrontHandler(pages, deps),
    plain: transcoder.handle,
    jsonRpc: createJsonRpcHandler(createJsonRpcEntry({ ...deps, methods, discover }), deps),
    connect: connect.handle,
    pages: createPageHandler(pages, deps),
    fallback: createNotFoundHandler(methodsOf, deps),
  };
}

/**
 * Creates a server for gRPC only.
 *
 * @param tls credentials for mutual TLS, by which both ends prove their identities.
 */
export function createGrpcOnlyServer(deps: ProtocolDeps, tls?: TlsCredentials): RpcListener {
  const handle = chainHandlers(
    [createGrpcHandlers(deps, createLazyConnect(deps).serveByLibrary).grpc],
    createNotFoundHandler(() => [], deps),
    deps,
  );
  return createPort({ handle, gate: deps.gate, nextRequestId: createRequestIds(), tls, isMutual: tls !== undefined });
}

export type McpPortDeps = ProtocolDeps & Pick<McpDeps, "resources" | "info">;

/**
 * Creates the MCP server, with tools for assistants. Loads its library only here, because node startup is 20 % faster
 * without.
 */
export async function createMcpPort(deps: McpPortDeps): Promise<RpcListener> {
  const { createMcpServer } = await import("../mcp/mcp-server.js");
  return createMcpServer({
    ...deps,
    nextRequestId: createRequestIds(),
    methods: nameMethods(deps.services),
  });
}
