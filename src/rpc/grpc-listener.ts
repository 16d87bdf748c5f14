/** A port for gRPC alone, which drains. */
import { type Server as GrpcServer, ServerCredentials } from "@grpc/grpc-js";
import { createServer, type Socket } from "node:net";
import { listenOn, type RpcListener } from "./listen.js";

/** Builds a listener, not bound yet, for a grpc-js server. */
export function createGrpcListener(grpcServer: GrpcServer): RpcListener {
  const injector = grpcServer.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy()).once("close", () => sockets.delete(socket));
    injector.injectConnection(socket);
  });
  return {
    listen: (host, port) => listenOn(server, host, port),
    async drain(graceMs) {
      injector.drain(graceMs);
      const giveUp = setTimeout(() => sockets.forEach((socket) => socket.destroy()), graceMs);
      await new Promise<void>((resolve) => server.close(() => resolve()));
      clearTimeout(giveUp);
      grpcServer.forceShutdown();
    },
  };
}
