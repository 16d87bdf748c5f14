/**
 * HTTP/1.1 server of a port. This server owns the listening socket, because Node.js enforces timeouts only while
 * listening.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createHttpsServer, type ServerOptions as HttpsServerOptions } from "node:https";
import type { Socket } from "node:net";
import type { RpcError } from "../errors.js";
import { methodNotAllowed } from "../exchange/responses.js";
import type { PortTimeouts } from "./listen.js";
import { toParserError } from "./request-head.js";

export interface Http1Listeners {
  /** @param awaitsContinue true if the client waits for 100 before it sends the body. */
  readonly onRequest: (request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean) => void;
  /** Called, possibly repeatedly, with a socket from which no more requests can be read. */
  readonly onRejected: (socket: Socket, failure: RpcError) => void;
}

/** @param timeouts `keepAliveTimeout` is that of an idle connection between requests. */
export function createHttp1Server(
  { onRequest, onRejected }: Http1Listeners,
  tls: HttpsServerOptions | undefined,
  timeouts: PortTimeouts & { readonly keepAliveTimeout: number },
): Server {
  // The port checks the host itself. Node.js would respond without a body.
  const options = { ...timeouts, requireHostHeader: false };
  const server =
    tls === undefined
      ? createServer(options)
      : createHttpsServer({ ...options, ...tls, handshakeTimeout: timeouts.headersTimeout });
  // Node.js would ignore those after the first 2,000. Their bytes are limited.
  server.maxHeadersCount = 0;
  const listener =
    (awaitsContinue: boolean) =>
    (request: IncomingMessage, response: ServerResponse): void =>
      onRequest(request, response, awaitsContinue);
  server.on("request", listener(false)).on("checkExpectation", listener(false)).on("checkContinue", listener(true));
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    // At the end of the connection within a request, its exchange ends with the socket.
    if (error.code === "ECONNRESET" || error.code === "HPE_INVALID_EOF_STATE" || !socket.writable) {
      socket.destroy();
    } else {
      onRejected(socket as Socket, toParserError(error));
    }
  });
  server.on("connect", (_request, socket) =>
    onRejected(socket as Socket, methodNotAllowed("CONNECT", ["GET", "POST", "OPTIONS"])),
  );
  return server;
}
