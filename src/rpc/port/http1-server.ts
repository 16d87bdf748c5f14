/**
 * HTTP/1.1 server of a port. This server owns the listening socket, because Node.js enforces timeouts only while
 * listening.
 */
import { createServer, type RequestListener, type Server, type ServerOptions } from "node:http";
import { createServer as createHttpsServer, type ServerOptions as HttpsServerOptions } from "node:https";
import type { Socket } from "node:net";
import { RpcError } from "../errors.js";
import { errorBody } from "../exchange/responses.js";

/** Time limit for the first bytes and the headers of a request, and for a TLS handshake, in milliseconds. */
export const headersWithinMs = 10_000;
/** Time limit for a complete request, in milliseconds. */
const requestWithinMs = 30_000;
/** Time limit for an idle connection between requests, in milliseconds. */
const keepAliveMs = 60_000;

/** Creates the server. With `tls` it serves HTTPS. */
export function createHttp1Server(listener: RequestListener, tls: HttpsServerOptions | undefined): Server {
  const options: ServerOptions = {
    headersTimeout: headersWithinMs,
    requestTimeout: requestWithinMs,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: 2_000,
  };
  const server =
    tls === undefined
      ? createServer(options, listener)
      : createHttpsServer({ ...options, ...tls, handshakeTimeout: headersWithinMs }, listener);
  server.on("clientError", handleClientError);
  return server;
}

/** Responds to a request that the HTTP parser rejected, with the common error body, if the socket is still writable. */
function handleClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const failure = clientFailure(error.code);
  const body = errorBody(failure);
  socket.end(
    `HTTP/1.1 ${failure.kind.httpStatus} ${failure.reason}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nAccess-Control-Allow-Origin: *\r\nConnection: close\r\n\r\n${body}`,
  );
}

function clientFailure(code: string | undefined): RpcError {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return new RpcError("HEADERS_TOO_LARGE", "The request line and headers are too large.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new RpcError("REQUEST_TIMEOUT", "The request did not arrive in time.");
    default:
      return new RpcError("INVALID_REQUEST", "The request is not valid HTTP.");
  }
}
