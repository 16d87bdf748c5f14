/** The HTTP/2 of a port: each stream becomes an exchange, and who plays games with the protocol is struck. */
import {
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from "node:http2";
import type { Socket } from "node:net";
import type { Exchange } from "../exchange/exchange.js";
import { Http2Exchange } from "../exchange/http2-exchange.js";
import type { Connection } from "../gate.js";

const options: ServerOptions = {
  settings: {
    maxConcurrentStreams: 256,
    enablePush: false,
    // Small, so that a few bytes cannot stand for many: a reference to an entry costs one byte.
    headerTableSize: 1_024,
    maxHeaderListSize: 16 * 1024,
    initialWindowSize: 256 * 1024,
  },
  maxHeaderListPairs: 100,
  maxSessionInvalidFrames: 20,
  maxSessionRejectedStreams: 20,
  // In units of a million bytes. What answers hold is bounded by the gate.
  maxSessionMemory: 32,
};

/** How often a connection is looked after. */
const lookEveryMs = 60_000;
/** A connection that has been without a stream at so many looks in a row is closed. */
const maxIdleLooks = 10;
/** A connection whose other end vanished without a word is found by pings while it has streams. */
const pongWithinMs = 20_000;

export interface Http2Sessions {
  accept(socket: Socket, connection: Connection): void;
  /** Takes no more streams, and ends each connection when those under way are answered. */
  drain(): void;
}

export function createHttp2Sessions(handle: (exchange: Exchange) => void, nextRequestId: () => string): Http2Sessions {
  const sessions = new Set<ServerHttp2Session>();

  function accept(socket: Socket, connection: Connection): void {
    const session = performServerHandshake(socket, options);
    let openStreams = 0;
    sessions.add(session);
    session.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      stream.on("error", ignore);
      if (stream.destroyed || stream.closed) {
        connection.strike();
        return;
      }
      openStreams++;
      stream.once("aborted", () => connection.strike());
      stream.once("close", () => openStreams--);
      handle(new Http2Exchange(nextRequestId(), connection, stream, headers));
    });
    session.on("error", () => connection.strike());
    session.on("frameError", () => connection.strike());
    const stopLooking = lookAfter(session, () => openStreams);
    session.once("close", () => {
      stopLooking();
      sessions.delete(session);
    });
  }

  return { accept, drain: () => sessions.forEach((session) => session.close()) };
}

/** Closes a connection that is idle for long, and one whose other end does not answer. */
function lookAfter(session: ServerHttp2Session, openStreams: () => number): () => void {
  let idleLooks = 0;
  let late: NodeJS.Timeout | undefined;
  const timer = setInterval(() => {
    if (session.destroyed || session.closed) {
      return;
    }
    if (openStreams() === 0) {
      idleLooks++;
      if (idleLooks >= maxIdleLooks) {
        session.close();
      }
      return;
    }
    idleLooks = 0;
    late ??= setTimeout(() => session.destroy(), pongWithinMs);
    session.ping(() => {
      clearTimeout(late);
      late = undefined;
    });
  }, lookEveryMs).unref();
  return () => {
    clearInterval(timer);
    clearTimeout(late);
  };
}

const ignore = (): void => undefined;
