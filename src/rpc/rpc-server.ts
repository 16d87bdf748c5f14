/** All protocols over one list of services: what the node serves on its public port. */
import { randomBytes } from "node:crypto";
import type { Gate } from "./gate.js";
import { createConnectHandler } from "./connect.js";
import { createGrpcListener } from "./grpc-listener.js";
import { createGrpcServer } from "./grpc-server.js";
import { createJsonRpcEntry } from "./json-rpc.js";
import { createRpcListener, type RpcListener } from "./rpc-listener.js";
import type { ServedService } from "./service.js";
import { createTranscoder } from "./transcoder.js";
import { createWebApp } from "./web-app.js";

/** What the server needs. */
export interface RpcServerParts {
  readonly services: readonly ServedService[];
  readonly gate: Gate;
  /** Hears of every exception that the caller is told nothing about; the response carries the request's name. */
  readonly onInternalError: (error: unknown, requestId: string) => void;
}

/**
 * Builds the server, not listening yet.
 *
 * @throws Error when the annotations contradict each other; it names the rpcs.
 */
export function createRpcServer({ services, gate, onInternalError }: RpcServerParts): RpcListener {
  const nextRequestId = createRequestIds();
  const transcoder = createTranscoder({ services, gate, nextRequestId, onInternalError });
  const webApp = createWebApp({
    gate,
    connect: createConnectHandler({ services, gate, onInternalError }),
    jsonRpc: createJsonRpcEntry(),
    nextRequestId,
    onInternalError,
    methodsOf: (path) => transcoder.methodsOf(path),
  });
  const grpcServer = createGrpcServer({ services, gate, nextRequestId, onInternalError });
  return createRpcListener({ transcoder, webApp, grpcServer });
}

/** Builds the server of the internal port: gRPC alone. */
export function createInternalServer({ services, gate, onInternalError }: RpcServerParts): RpcListener {
  return createGrpcListener(createGrpcServer({ services, gate, nextRequestId: createRequestIds(), onInternalError }));
}

/** Names for requests: unlike those of another process, and cheap, since most are never looked up. */
function createRequestIds(): () => string {
  const prefix = randomBytes(4).toString("hex");
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}
