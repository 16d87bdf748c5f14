/** Exchanges for requests that a plain Node.js HTTP server accepts, such as that of the MCP endpoint. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Connection, Gate } from "../gate.js";
import { Http1Exchange } from "./http1-exchange.js";

/**
 * Creates a function that wraps requests as exchanges. Returns undefined, and closes the connection, if the gate
 * rejects the connection.
 */
export function createExchangeFactory(
  gate: Gate,
  nextRequestId: () => string,
): (request: IncomingMessage, response: ServerResponse) => Http1Exchange | undefined {
  const connections = new WeakMap<Socket, Connection>();
  return (request, response) => {
    const { socket } = request;
    let connection = connections.get(socket);
    if (connection === undefined) {
      connection = gate.connect(socket.remoteAddress ?? "", () => socket.destroy());
      if (connection === undefined) {
        socket.destroy();
        return undefined;
      }
      connections.set(socket, connection);
      socket.once("close", connection.end.bind(connection));
    }
    return new Http1Exchange(nextRequestId(), connection, request, response);
  };
}
