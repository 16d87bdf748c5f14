/** Exchanges of requests that a server of somebody else took: an application of Express, or a server of the SDK's. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Connection, Gate } from "../gate.js";
import { Http1Exchange } from "./http1-exchange.js";

/**
 * Makes exchanges; undefined for a request on a connection that the gate turns away, which is closed.
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
