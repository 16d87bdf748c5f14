/** The HTTP/2 of a port: each stream becomes an exchange, and who plays games with the protocol is struck. */
import { constants, createServer, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { Connection } from "../gate.js";
import type { Exchange } from "../exchange/exchange.js";
import { Http2Exchange } from "../exchange/http2-exchange.js";

/** Most streams at a time of one connection. */
const maxStreams = 256;
/** How long a connection may be without a stream. */
const idleMs = 10 * 60_000;
/** A connection whose other end vanished without a word is found by pings, and closed. */
const pingEveryMs = 60_000;
const pongWithinMs = 20_000;

export interface Http2Sessions {
  accept(socket: Socket, connection: Connection): void;
  /** Takes no more streams, and ends each connection when those under way are answered. */
  drain(): void;
}

export function createHttp2Sessions(handle: (exchange: Exchange) => void, nextRequestId: () => string): Http2Sessions {
  const sessions = new Set<ServerHttp2Session>();
  const connections = new WeakMap<Socket, Connection>();
  const server = createServer({
    settings: {
      maxConcurrentStreams: maxStreams,
      enablePush: false,
      // Small, so that a few bytes cannot stand for many: a reference to an entry costs one byte.
      headerTableSize: 1_024,
      maxHeaderListSize: 16 * 1024,
      initialWindowSize: 256 * 1024,
    },
    maxSessionInvalidFrames: 20,
    maxSessionRejectedStreams: 20,
    maxHeaderListPairs: 100,
    // In units of a million bytes; what waits to be sent is bounded by the gate.
    maxSessionMemory: 8,
    unknownProtocolTimeout: 1_000,
  });

  server.on("session", (session) => {
    // Sessions are made while the socket is being accepted.
    const connection = connections.get(accepting!)!;
    sessions.add(session);
    session.on("stream", (stream, headers) => {
      stream.on("error", ignore);
      if (stream.destroyed || stream.closed) {
        connection.strike();
        return;
      }
      stream.once("aborted", () => connection.strike());
      handle(new Http2Exchange(nextRequestId(), connection, stream, headers));
    });
    session.on("error", () => connection.strike());
    session.on("frameError", () => connection.strike());
    session.setTimeout(idleMs, () => session.close());
    const stopPings = keepAlive(session);
    session.once("close", () => {
      stopPings();
      sessions.delete(session);
    });
  });
  server.on("sessionError", ignore);

  let accepting: Socket | undefined;
  return {
    accept(socket, connection) {
      connections.set(socket, connection);
      accepting = socket;
      server.emit("connection", socket);
      accepting = undefined;
    },
    drain: () => sessions.forEach((session) => session.close()),
  };
}

function keepAlive(session: ServerHttp2Session): () => void {
  let late: NodeJS.Timeout | undefined;
  const timer = setInterval(() => {
    if (session.destroyed || session.closed) {
      return;
    }
    late ??= setTimeout(() => session.destroy(undefined, constants.NGHTTP2_NO_ERROR), pongWithinMs);
    session.ping(() => {
      clearTimeout(late);
      late = undefined;
    });
  }, pingEveryMs);
  return () => {
    clearInterval(timer);
    clearTimeout(late);
  };
}

const ignore = (): void => undefined;
