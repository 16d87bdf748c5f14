/** A port or Unix socket for gRPC alone, which drains; over mutual TLS where both ends are to prove who they are. */
import { type Server as GrpcServer, ServerCredentials } from "@grpc/grpc-js";
import { createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { identityOfCertificate, type TlsCredentials } from "../../base/certificate.js";
import { createHttp2Sockets } from "../port/http2-sockets.js";
import { listenOn, type RpcListener } from "../port/listen.js";

/** Where the other ends of connections are noted: `address:port`, as grpc-js names it, to the identity it proved. */
export type ProvenIdentities = Map<string, string>;

/** How long a TLS handshake may take. */
const handshakeWithinMs = 5_000;

/** Builds a listener, not bound yet, for a grpc-js server. */
export function createGrpcListener(grpcServer: GrpcServer): RpcListener {
  const injector = grpcServer.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = createHttp2Sockets();
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    if (sockets.accept(socket)) {
      injector.injectConnection(socket);
    }
  });
  return { listen: (address) => listenOn(server, address), drain: drain(server, injector, sockets, grpcServer) };
}

/**
 * {@link createGrpcListener} over TLS. The certificates of clients are signed by nobody: what counts is the key in
 * them, and a client without one is turned away.
 */
export function createMutualTlsListener(
  grpcServer: GrpcServer,
  credentials: TlsCredentials,
  identities: ProvenIdentities,
): RpcListener {
  const injector = grpcServer.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = createHttp2Sockets();
  const server = createTlsServer(
    {
      ...credentials,
      requestCert: true,
      rejectUnauthorized: false,
      minVersion: "TLSv1.3",
      ALPNProtocols: ["h2"],
      handshakeTimeout: handshakeWithinMs,
    },
    (socket) => {
      const identity = identityOfCertificate(socket.getPeerCertificate().raw);
      if (identity === undefined || socket.alpnProtocol !== "h2") {
        socket.destroy();
        return;
      }
      const name = `${socket.remoteAddress}:${socket.remotePort}`;
      identities.set(name, identity);
      socket.once("close", () => identities.delete(name));
      injector.injectConnection(socket);
    },
  );
  server.on("connection", (socket: Socket) => {
    socket.on("error", () => socket.destroy());
    sockets.accept(socket);
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return { listen: (address) => listenOn(server, address), drain: drain(server, injector, sockets, grpcServer) };
}

function drain(
  server: ReturnType<typeof createServer>,
  injector: ReturnType<GrpcServer["createConnectionInjector"]>,
  sockets: ReturnType<typeof createHttp2Sockets>,
  grpcServer: GrpcServer,
): RpcListener["drain"] {
  return async (graceMs) => {
    injector.drain(graceMs);
    const giveUp = setTimeout(() => sockets.destroyAll(), graceMs);
    await new Promise<void>((resolve) => server.close(() => resolve()));
    clearTimeout(giveUp);
    grpcServer.forceShutdown();
  };
}
