/** All protocols over one list of services: what the node serves on its ports. */
import type { RequestListener } from "node:http";
import type { TlsCredentials } from "../../base/certificate.js";
import { createConnectLater } from "../connect/connect-later.js";
import { createApiDocs } from "../describe/api-docs.js";
import { commentOf } from "../describe/comments.js";
import type { DocumentInfo } from "../describe/openapi.js";
import { describeOpenRpc } from "../describe/openrpc.js";
import type { Exchange } from "../exchange/exchange.js";
import type { ProtocolParts } from "../gate.js";
import { createGrpcHandler } from "../grpc/grpc-handler.js";
import { createPageServer, type Pages } from "../http/pages.js";
import { createTranscoder } from "../http/transcoder.js";
import { createJsonRpcEntry } from "../json-rpc/json-rpc.js";
import { nameMethods } from "../json-rpc/named-methods.js";
import type { AnswerNodeCall } from "../json-rpc/node-call-envelope.js";
import type { McpParts } from "../mcp/mcp-server.js";
import type { RpcListener } from "../port/listen.js";
import { createPort } from "../port/port.js";
import {
  chainHandlers,
  createJsonRpcHandler,
  createLastHandler,
  createPageHandler,
  createPreflightHandler,
} from "./chain.js";
import { createMount } from "./mount.js";
import { createRequestIds } from "./request-ids.js";

export interface RpcServerParts extends ProtocolParts {
  /** The node-call interface of existing clients. */
  readonly nodeCall: AnswerNodeCall;
  /** What descriptions of the interface say of it. */
  readonly info: DocumentInfo;
  /** Documents beside those that describe the interface. */
  readonly pages?: Pages;
  /** As of a port. */
  readonly connectionAgeMs?: number | undefined;
}

/**
 * Builds the chain of all protocols, which answers requests of either HTTP.
 *
 * @throws Error when the annotations contradict each other; it names the rpcs.
 */
export function createChain(parts: RpcServerParts): (exchange: Exchange) => void {
  const transcoder = createTranscoder(parts);
  const methods = nameMethods(parts.services);
  let discovered: string | undefined;
  const discover = (): string => (discovered ??= describeOpenRpc(methods, parts.info, commentOf));
  const pages = createPageServer({ ...createApiDocs(parts.services, parts.info, commentOf), ...parts.pages });
  const connect = createConnectLater(parts);
  const methodsOf = (path: string): string[] => [
    ...new Set([
      ...transcoder.methodsOf(path),
      ...(pages.has(path) ? ["GET", "HEAD"] : []),
      ...(path === "/" ? ["POST"] : []),
    ]),
  ];
  return chainHandlers(
    [
      createPreflightHandler(parts),
      createGrpcHandler(parts, connect.serveByLibrary),
      transcoder.handle,
      createJsonRpcHandler(createJsonRpcEntry({ ...parts, methods, discover }), parts),
      connect.handle,
      createPageHandler(pages, parts),
    ],
    createLastHandler(methodsOf, parts),
    parts,
  );
}

/** The server of the public port. */
export interface RpcServer extends RpcListener {
  /** Answers a request that another server of HTTP/1.1 took, as the port would; it drains with the port. */
  readonly handle: RequestListener;
}

/**
 * Builds the server of the public port, not listening yet.
 *
 * @param tls with it, the port speaks TLS and nothing else.
 * @throws Error when the annotations contradict each other; it names the rpcs.
 */
export function createRpcServer(parts: RpcServerParts, tls?: TlsCredentials): RpcServer {
  const answering = { ...parts, handle: createChain(parts), nextRequestId: createRequestIds() };
  const port = createPort({ ...answering, tls });
  const mount = createMount(answering);
  return {
    ...port,
    handle: mount.handle,
    async drain(graceMs) {
      await Promise.all([port.drain(graceMs), mount.drain(graceMs)]);
    },
  };
}

/**
 * Builds a server for gRPC alone.
 *
 * @param tls with it, both ends prove their identities by TLS, and callers have theirs.
 */
export function createGrpcOnlyServer(parts: ProtocolParts, tls?: TlsCredentials): RpcListener {
  const handle = chainHandlers(
    [createGrpcHandler(parts, createConnectLater(parts).serveByLibrary)],
    createLastHandler(() => [], parts),
    parts,
  );
  return createPort({ handle, gate: parts.gate, nextRequestId: createRequestIds(), tls, isMutual: tls !== undefined });
}

export type McpPortParts = ProtocolParts & Pick<McpParts, "resources" | "info">;

/** Builds a server of tools for assistants. Its library is loaded here: a node without it starts a fifth faster. */
export async function createMcpPort(parts: McpPortParts): Promise<RpcListener> {
  const { createMcpServer } = await import("../mcp/mcp-server.js");
  return createMcpServer({
    ...parts,
    nextRequestId: createRequestIds(),
    methods: nameMethods(parts.services),
    commentOf,
  });
}
