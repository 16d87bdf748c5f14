/** All protocols over one list of services: what the node serves on its public port. */
import { randomBytes } from "node:crypto";
import { createApiDocs } from "../describe/api-docs.js";
import { commentOf } from "../describe/comments.js";
import { createConnectHandler } from "../connect/connect-handler.js";
import type { ProtocolParts } from "../gate.js";
import type { TlsCredentials } from "../../base/certificate.js";
import { createGrpcListener, createMutualTlsListener, type ProvenIdentities } from "../grpc/grpc-listener.js";
import { createGrpcServer } from "../grpc/grpc-server.js";
import { createJsonRpcEntry } from "../json-rpc/json-rpc.js";
import type { AnswerNodeCall } from "../json-rpc/node-call-envelope.js";
import type { RpcListener } from "../port/listen.js";
import type { McpParts } from "../mcp/mcp-server.js";
import { nameMethods } from "../json-rpc/named-methods.js";
import type { DocumentInfo } from "../describe/openapi.js";
import { describeOpenRpc } from "../describe/openrpc.js";
import { createPageServer, type Pages } from "../http/pages.js";
import { createRpcListener } from "./rpc-listener.js";
import { createTranscoder } from "../http/transcoder.js";
import { createWebApp } from "./web-app.js";

export type GrpcServerParts = Omit<ProtocolParts, "nextRequestId">;

export interface RpcServerParts extends GrpcServerParts {
  /** The node-call interface of existing clients. */
  readonly nodeCall: AnswerNodeCall;
  /** What descriptions of the interface say of it. */
  readonly info: DocumentInfo;
  /** Documents beside those that describe the interface. */
  readonly pages?: Pages;
}

/**
 * Builds the server, not listening yet.
 *
 * @param tls with it, the port speaks TLS and nothing else.
 * @throws Error when the annotations contradict each other; it names the rpcs.
 */
export function createRpcServer(given: RpcServerParts, tls?: TlsCredentials): RpcListener {
  const parts = { ...given, nextRequestId: createRequestIds() };
  const transcoder = createTranscoder(parts);
  let discovered: string | undefined;
  const methods = nameMethods(parts.services);
  const webApp = createWebApp({
    ...parts,
    pages: createPageServer({ ...createApiDocs(parts.services, parts.info, commentOf), ...parts.pages }),
    connect: createConnectHandler(parts),
    jsonRpc: createJsonRpcEntry({
      ...parts,
      methods,
      discover: () => (discovered ??= describeOpenRpc(methods, parts.info, commentOf)),
    }),
    methodsOf: (path) => transcoder.methodsOf(path),
  });
  const addressHeader = `x-caller-${randomBytes(16).toString("hex")}`;
  const grpcServer = createGrpcServer(parts, { addressHeader });
  return createRpcListener({ transcoder, webApp, grpcServer, addressHeader, tls });
}

/**
 * Builds a server for gRPC alone.
 *
 * @param tls with it, both ends prove their identities by TLS, and callers have theirs.
 */
export function createGrpcOnlyServer(given: GrpcServerParts, tls?: TlsCredentials): RpcListener {
  const parts = { ...given, nextRequestId: createRequestIds() };
  if (tls === undefined) {
    return createGrpcListener(createGrpcServer(parts));
  }
  const identities: ProvenIdentities = new Map();
  return createMutualTlsListener(createGrpcServer(parts, { identities }), tls, identities);
}

export type McpPortParts = GrpcServerParts & Pick<McpParts, "resources" | "info">;

/** Builds a server of tools for assistants. Its library is loaded here: a node without it starts a fifth faster. */
export async function createMcpPort(given: McpPortParts): Promise<RpcListener> {
  const { createMcpServer } = await import("../mcp/mcp-server.js");
  return createMcpServer({
    ...given,
    nextRequestId: createRequestIds(),
    methods: nameMethods(given.services),
    commentOf,
  });
}

/** Names for requests: unlike those of another process, and cheap, since most are never looked up. */
function createRequestIds(): () => string {
  const prefix = randomBytes(4).toString("hex");
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}
