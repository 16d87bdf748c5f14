/** The node's public port: plain HTTP, the Express application and native gRPC behind one listener that drains. */
import { ServerCredentials, type Server as GrpcServer } from "@grpc/grpc-js";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Server as NetServer, type Socket } from "node:net";
import { answerPreflight } from "../edge/cors.js";
import { Failure } from "../errors.js";
import { failureBody } from "./http-reply.js";
import { listenOn, type RpcListener } from "./listen.js";
import { splitByPreface } from "./one-port.js";
import type { Transcoder } from "./transcoder.js";

/** How long a client may take for the first bytes, and for the headers, of a request. */
const headersWithinMs = 10_000;
/** How long a client may take for a whole request. */
const requestWithinMs = 30_000;
/** How long a connection may be idle between requests. */
const keepAliveMs = 60_000;
/** How long idle connections are kept after the port closed, so that a request already on its way is answered. */
const lastRequestsWithinMs = 100;

/** Most HTTP/2 connections at a time. */
const maxHttp2Connections = 1_000;
/** A client that has sent less than this has opened the connection and asked for nothing. */
const leastRequestBytes = 120;

/** What the listener serves. */
export interface RpcListenerParts {
  readonly transcoder: Transcoder;
  readonly webApp: (request: IncomingMessage, response: ServerResponse) => void;
  readonly grpcServer: GrpcServer;
}

/** Builds the listener. */
export function createRpcListener({ transcoder, webApp, grpcServer }: RpcListenerParts): RpcListener {
  let draining = false;
  const server = createServer(
    {
      headersTimeout: headersWithinMs,
      requestTimeout: requestWithinMs,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: 2_000,
    },
    (request, response) => {
      if (draining) {
        response.shouldKeepAlive = false;
      }
      if (request.method === "OPTIONS") {
        answerPreflight(response);
      } else {
        transcoder.handle(request, response, () => webApp(request, response));
      }
    },
  );
  server.on("clientError", answerClientError);

  const http2Sockets = createHttp2Sockets();
  const injector = grpcServer.createConnectionInjector(ServerCredentials.createInsecure());
  const undecided = splitByPreface(
    server,
    (socket) => {
      if (http2Sockets.admit(socket)) {
        injector.injectConnection(socket);
      }
    },
    headersWithinMs,
  );

  return {
    listen: (host, port) => listenOn(server, host, port),
    async drain(graceMs) {
      draining = true;
      injector.drain(graceMs);
      // http.Server's own close() would cut idle connections on which a request may be arriving at this moment.
      const closed = new Promise<void>((resolve) => {
        NetServer.prototype.close.call(server, () => resolve());
      });
      const closeIdle = setInterval(() => server.closeIdleConnections(), lastRequestsWithinMs);
      const giveUp = setTimeout(() => {
        undecided.close();
        server.closeAllConnections();
        http2Sockets.destroyAll();
      }, graceMs);
      await closed;
      clearInterval(closeIdle);
      clearTimeout(giveUp);
      server.close();
      grpcServer.forceShutdown();
    },
  };
}

/**
 * The HTTP/2 connections, bounded: where there are too many, one that has not asked for anything yet makes room, and if
 * all have, the new one is closed.
 */
function createHttp2Sockets() {
  const sockets = new Set<Socket>();
  return {
    admit(socket: Socket): boolean {
      if (sockets.size >= maxHttp2Connections) {
        const silent = [...sockets].find(({ bytesRead }) => bytesRead < leastRequestBytes);
        (silent ?? socket).destroy();
        if (silent === undefined) {
          return false;
        }
        sockets.delete(silent);
      }
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
      return true;
    },
    destroyAll: () => sockets.forEach((socket) => socket.destroy()),
  };
}

/** Answers what the HTTP parser could not read, in the one error body, where the socket still takes an answer. */
function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const failure = clientFailure(error.code);
  const body = failureBody(failure);
  socket.end(
    `HTTP/1.1 ${failure.kind.httpStatus} ${failure.reason}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nAccess-Control-Allow-Origin: *\r\nConnection: close\r\n\r\n${body}`,
  );
}

function clientFailure(code: string | undefined): Failure {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return new Failure("HEADERS_TOO_LARGE", "The request line and headers are too large.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new Failure("REQUEST_TIMEOUT", "The request did not arrive in time.");
    default:
      return new Failure("INVALID_REQUEST", "The request is not valid HTTP.");
  }
}
