/** Open connections of a port, as admitted by the gate. */
import type { Socket } from "node:net";
import type { Connection, Gate } from "../gate.js";

export interface OpenConnection {
  /** TCP connection, below TLS if TLS is used. */
  readonly socket: Socket;
  readonly connection: Connection;
  /** True if the connection uses HTTP/2 or has carried a request. */
  isUsed: boolean;
  /** Time of admission, on the clock of `performance.now()`. */
  readonly sinceMs: number;
  /** HTTP/2 session; undefined for other connections. */
  session: { close(): void } | undefined;
}

export interface OpenConnections {
  /** Admits a connection; returns undefined if the gate rejected it, and closes it then. */
  admit(socket: Socket): OpenConnection | undefined;
  /** Registers another socket for a connection: the one that TLS creates. */
  alias(socket: Socket, entry: OpenConnection): void;
  /** Returns the admitted connection of a socket. */
  of(socket: Socket): OpenConnection;
  /** Closes the matching connections. */
  abort(matches: (entry: OpenConnection) => boolean): void;
}

export function createOpenConnections(gate: Gate): OpenConnections {
  const entries = new Set<OpenConnection>();
  const bySocket = new WeakMap<Socket, OpenConnection>();
  return {
    admit(socket) {
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
    abort(matches) {
      for (const entry of entries) {
        if (matches(entry)) {
          close(entry);
        }
      }
    },
  };
}

/**
 * Closes a connection, its session first. If only the socket were destroyed, the session would still open every stream
 * of the last read.
 *
 * The session is closed, which rejects these streams, but not destroyed. Node.js 22.23 aborts the process with an
 * assertion if a session is destroyed while it reads and the next frame ends a stream. The end of the socket destroys
 * the session later.
 */
function close({ socket, session }: OpenConnection): void {
  session?.close();
  socket.destroy();
}
