/** The node's public port: plain HTTP, the Express application and native gRPC behind one listener that drains. */
import { ServerCredentials, type Server as GrpcServer } from "@grpc/grpc-js";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { Server as NetServer, type Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import type { TlsCredentials } from "../../base/certificate.js";
import { answerPreflight } from "../http/cors.js";
import { Failure } from "../errors.js";
import { failureBody } from "../http/http-reply.js";
import { createHttp2Front } from "../port/http2-front.js";
import { createHttp2Sockets } from "../port/http2-sockets.js";
import { listenOn, type RpcListener } from "../port/listen.js";
import { splitByPreface } from "../port/one-port.js";
import type { Transcoder } from "../http/transcoder.js";

/** How long a client may take for the first bytes, and for the headers, of a request. */
const headersWithinMs = 10_000;
/** How long a client may take for a whole request. */
const requestWithinMs = 30_000;
/** How long a connection may be idle between requests. */
const keepAliveMs = 60_000;
/** How long idle connections are kept after the port closed, so that a request already on its way is answered. */
const lastRequestsWithinMs = 100;

export interface RpcListenerParts {
  readonly transcoder: Transcoder;
  readonly webApp: (request: IncomingMessage, response: ServerResponse) => void;
  readonly grpcServer: GrpcServer;
  /** Header by which calls that were carried to the gRPC server tell it the caller's address. */
  readonly addressHeader: string;
  /** Undefined for cleartext. */
  readonly tls: TlsCredentials | undefined;
}

export function createRpcListener(parts: RpcListenerParts): RpcListener {
  const { transcoder, webApp, grpcServer, tls, addressHeader } = parts;
  let draining = false;
  const server = createWebServer(tls, (request, response) => {
    if (draining) {
      response.shouldKeepAlive = false;
    }
    if (request.method === "OPTIONS") {
      answerPreflight(response);
    } else {
      transcoder.handle(request, response, () => webApp(request, response));
    }
  });
  server.on("clientError", answerClientError);

  const http2Sockets = createHttp2Sockets();
  const injector = grpcServer.createConnectionInjector(ServerCredentials.createInsecure());
  const { undecided, acceptHttp1 } = splitByPreface(
    server,
    tls === undefined ? "connection" : "secureConnection",
    (socket) => {
      if (!http2Sockets.accept(socket)) {
        return;
      }
      if (speaksHttp1.has(socket)) {
        front.accept(socket);
      } else {
        injector.injectConnection(socket);
      }
    },
    headersWithinMs,
  );
  const front = createHttp2Front({
    acceptHttp1,
    acceptGrpc: (socket) => injector.injectConnection(socket),
    addressHeader,
  });

  return {
    listen: (address) => listenOn(server, address),
    ...(server instanceof TlsServer && {
      renewTls: (credentials: TlsCredentials) => server.setSecureContext(credentials),
    }),
    async drain(graceMs) {
      draining = true;
      front.drain();
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

/** Connections of clients that offered HTTP/1.1 beside HTTP/2. */
const speaksHttp1 = new WeakSet<Socket>();

/** Over TLS the client says by ALPN which protocols it speaks; HTTP/2 is found by its preface all the same. */
function createWebServer(tls: TlsCredentials | undefined, listener: RequestListener): ReturnType<typeof createServer> {
  const options: ServerOptions = {
    headersTimeout: headersWithinMs,
    requestTimeout: requestWithinMs,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: 2_000,
  };
  return tls === undefined
    ? createServer(options, listener)
    : createHttpsServer(
        { ...options, ...tls, ALPNCallback: chooseProtocol, handshakeTimeout: headersWithinMs },
        listener,
      );
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

function chooseProtocol(this: Socket, { protocols }: { readonly protocols: string[] }): string | undefined {
  if (protocols.includes("http/1.1")) {
    speaksHttp1.add(this);
  }
  return ["h2", "http/1.1"].find((protocol) => protocols.includes(protocol));
}
