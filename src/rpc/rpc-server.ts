/** All protocols over one list of services: what the node serves on its public port. */
import { randomBytes } from "node:crypto";
import { createConnectHandler } from "./connect.js";
import type { ProtocolParts } from "./gate.js";
import { createGrpcListener } from "./grpc-listener.js";
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
 * @throws Error when the annotations contradict each other; it names the rpcs.
 */
export function createRpcServer(given: RpcServerParts): RpcListener {
  const parts = { ...given, nextRequestId: createRequestIds() };
  const transcoder = createTranscoder(parts);
  const webApp = createWebApp({
    ...parts,
    connect: createConnectHandler(parts),
    jsonRpc: createJsonRpcEntry(),
    methodsOf: (path) => transcoder.methodsOf(path),
  });
  return createRpcListener({ transcoder, webApp, grpcServer: createGrpcServer(parts) });
}

/** Builds the server of the internal port: gRPC alone. */
export function createInternalServer(given: RpcServerParts): RpcListener {
  return createGrpcListener(createGrpcServer({ ...given, nextRequestId: createRequestIds() }));
}

/** Names for requests: unlike those of another process, and cheap, since most are never looked up. */
function createRequestIds(): () => string {
  const prefix = randomBytes(4).toString("hex");
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}
