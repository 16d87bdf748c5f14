/**
 * HTTP/1.1 server of a port. This server owns the listening socket, because Node.js enforces timeouts only while
 * listening.
 */
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createHttpsServer, type ServerOptions as HttpsServerOptions } from "node:https";
import type { Socket } from "node:net";
import { RpcError } from "../errors.js";
import { errorBody } from "../exchange/responses.js";
import { httpTimeouts } from "./listen.js";

/** @param idleTimeoutMs time limit for an idle connection between requests. */
export function createHttp1Server(
  listener: RequestListener,
  tls: HttpsServerOptions | undefined,
  idleTimeoutMs: number,
): Server {
  const timeouts = { ...httpTimeouts, keepAliveTimeout: idleTimeoutMs };
  const server =
    tls === undefined
      ? createServer(timeouts, listener)
      : createHttpsServer({ ...timeouts, ...tls, handshakeTimeout: httpTimeouts.headersTimeout }, listener);
  server.on("clientError", handleClientError);
  return server;
}

/** Responds to a request that the HTTP parser rejected, with the common error body, if the socket is still writable. */
function handleClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const failure = clientFailures[error.code ?? ""] ?? invalidHttp;
  const body = errorBody(failure);
  socket.end(
    `HTTP/1.1 ${failure.kind.httpStatus} ${failure.reason}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nAccess-Control-Allow-Origin: *\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n${body}`,
  );
}

const clientFailures: Readonly<Record<string, RpcError>> = {
  HPE_HEADER_OVERFLOW: new RpcError("HEADERS_TOO_LARGE", "The request line and headers are too large."),
  ERR_HTTP_REQUEST_TIMEOUT: new RpcError("REQUEST_TIMEOUT", "The request did not arrive in time."),
};
const invalidHttp = new RpcError("INVALID_REQUEST", "The request is not valid HTTP.");
