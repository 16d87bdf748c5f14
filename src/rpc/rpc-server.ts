/** All protocols over one list of services: what the node serves on its public port. */
import { randomBytes } from "node:crypto";
import { createConnectHandler } from "./connect.js";
import type { ProtocolParts } from "./gate.js";
import type { TlsCredentials } from "../certificate.js";
import { createGrpcListener, createMutualTlsListener, type ProvenIdentities } from "./grpc-listener.js";
import { createGrpcServer } from "./grpc-server.js";
import { createJsonRpcEntry } from "./json-rpc.js";
import type { RpcListener } from "./listen.js";
import { createRpcListener } from "./rpc-listener.js";
import { createTranscoder } from "./transcoder.js";
import { createWebApp } from "./web-app.js";

/** What the server needs. */
export type RpcServerParts = Omit<ProtocolParts, "nextRequestId">;

/**
 * Builds the server, not listening yet.
 *
 * @param tls with it, the port speaks TLS and nothing else.
 * @throws Error when the annotations contradict each other; it names the rpcs.
 */
export function createRpcServer(given: RpcServerParts, tls?: TlsCredentials): RpcListener {
  const parts = { ...given, nextRequestId: createRequestIds() };
  const transcoder = createTranscoder(parts);
  const webApp = createWebApp({
    ...parts,
    connect: createConnectHandler(parts),
    jsonRpc: createJsonRpcEntry(),
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
export function createGrpcOnlyServer(given: RpcServerParts, tls?: TlsCredentials): RpcListener {
  const parts = { ...given, nextRequestId: createRequestIds() };
  if (tls === undefined) {
    return createGrpcListener(createGrpcServer(parts));
  }
  const identities: ProvenIdentities = new Map();
  return createMutualTlsListener(createGrpcServer(parts, { identities }), tls, identities);
}

/** Names for requests: unlike those of another process, and cheap, since most are never looked up. */
function createRequestIds(): () => string {
  const prefix = randomBytes(4).toString("hex");
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}
