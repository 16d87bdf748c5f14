/** A port for gRPC alone, which drains. */
import { type Server as GrpcServer, ServerCredentials } from "@grpc/grpc-js";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { RpcListener } from "./rpc-listener.js";

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
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(port, host, () => {
          server.off("error", reject);
          resolve((server.address() as AddressInfo).port);
        });
      }),
    async drain(graceMs) {
      injector.drain(graceMs);
      const giveUp = setTimeout(() => sockets.forEach((socket) => socket.destroy()), graceMs);
      await new Promise<void>((resolve) => server.close(() => resolve()));
      clearTimeout(giveUp);
      grpcServer.forceShutdown();
    },
  };
}
