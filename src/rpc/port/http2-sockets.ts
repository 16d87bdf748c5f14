/** The HTTP/2 connections of a port, bounded. */
import type { Socket } from "node:net";

const maxHttp2Connections = 1_000;
/** A client that has sent less than this has opened the connection and asked for nothing. */
const leastRequestBytes = 120;

export interface Http2Sockets {
  /**
   * Takes a connection in: where there are too many, one that has not asked for anything yet makes room, and if all
   * have, the new one is closed. False when it was.
   */
  accept(socket: Socket): boolean;
  destroyAll(): void;
}

export function createHttp2Sockets(): Http2Sockets {
  const sockets = new Set<Socket>();
  return {
    accept(socket) {
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
