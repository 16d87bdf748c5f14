/** The connections of a port that the gate let in. */
import type { Socket } from "node:net";
import type { Connection, Gate } from "../gate.js";

/** A connection. */
export interface OpenConnection {
  /** The TCP connection, beneath TLS where there is TLS. */
  readonly socket: Socket;
  readonly connection: Connection;
  /** It speaks HTTP/2, or has made a request. */
  isUsed: boolean;
  /** When it was let in, on the clock of `performance.now()`. */
  readonly sinceMs: number;
  /** Its session, where it speaks HTTP/2. */
  session: { close(): void } | undefined;
}

export interface OpenConnections {
  /** Asks the gate; undefined when the connection was closed. */
  enter(socket: Socket): OpenConnection | undefined;
  /** Knows an entry by another socket as well: the one that TLS makes. */
  alias(socket: Socket, entry: OpenConnection): void;
  of(socket: Socket): OpenConnection;
  /** Closes those that match. */
  cut(matches: (entry: OpenConnection) => boolean): void;
}

export function createOpenConnections(gate: Gate): OpenConnections {
  const entries = new Set<OpenConnection>();
  const bySocket = new WeakMap<Socket, OpenConnection>();
  return {
    enter(socket) {
      socket.on("error", () => socket.destroy());
      const connection = gate.connect(socket.remoteAddress ?? "", () => close(entry));
      if (connection === undefined) {
        socket.destroy();
        return undefined;
      }
      const entry: OpenConnection = {
        socket,
        connection,
        isUsed: false,
        sinceMs: performance.now(),
        session: undefined,
      };
      entries.add(entry);
      bySocket.set(socket, entry);
      socket.once("close", () => {
        entries.delete(entry);
        connection.end();
      });
      return entry;
    },
    alias: (socket, entry) => void bySocket.set(socket, entry),
    of: (socket) => bySocket.get(socket)!,
    cut(matches) {
      for (const entry of entries) {
        if (matches(entry)) {
          close(entry);
        }
      }
    },
  };
}

/**
 * A socket alone tells its session too late: of what was read at once, every stream would still be opened. The session is
 * closed, which refuses these streams, and not destroyed: Node.js 22.23 ends the process with an assertion where a session
 * is destroyed while it is reading, and what it reads next ends a stream. The end of the socket destroys it later.
 */
function close({ socket, session }: OpenConnection): void {
  session?.close();
  socket.destroy();
}
