/** The HTTP/2 of a port: each stream becomes an exchange, and who plays games with the protocol is struck. */
import {
  constants,
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
import { isOld } from "./listen.js";

/** Most bytes of a request's headers. */
const maxHeaderBytes = 16 * 1024;

/**
 * The header table keeps its usual size: a smaller one has to be confirmed by the client, which nginx does not, and
 * nghttp2 ends the connection. What references to large entries can do is bounded by `weigh`.
 */
const options: ServerOptions = {
  settings: {
    maxConcurrentStreams: 256,
    enablePush: false,
    maxHeaderListSize: maxHeaderBytes,
    initialWindowSize: 256 * 1024,
  },
  maxHeaderListPairs: 100,
  maxSessionInvalidFrames: 20,
  maxSessionRejectedStreams: 20,
  // In units of a million bytes. What answers hold is bounded by the gate.
  maxSessionMemory: 32,
};

/** How often idle and silent connections are looked for. */
const longestLookMs = 60_000;
/** A connection that has been without a stream at so many looks in a row is closed. */
const maxIdleLooks = 10;
/** A connection whose other end vanished without a word is found by pings while it has streams. */
const pongWithinMs = 20_000;

/** How often it is looked what connections have sent. */
const weighEveryMs = 100;
/** What a request may send beyond its body: headers as long as they may be, and what keeps the connection going. */
const bytesPerRequest = maxHeaderBytes;
/** What is sent beyond that serves nobody, and so many bytes of it are a strike. */
const bytesPerStrike = 8 * 1024;
/** Who opens a stream and resets it in the same bytes never meant to have an answer: it counts as so many that are given up. */
const strikesOfRapidReset = 5;

export interface Http2Sessions {
  /** Returns the session, which opens no more streams from when it is closed. */
  accept(socket: Socket, connection: Connection): Pick<ServerHttp2Session, "close">;
  /** Takes no more streams, and ends each connection when those under way are answered. */
  drain(): void;
}

/** A connection of HTTP/2, and what has come by it. */
interface Session {
  readonly http2: ServerHttp2Session;
  readonly socket: Socket;
  readonly connection: Connection;
  openStreams: number;
  /** Another one in each turn of the event loop in which streams are opened: what is of one turn was read at once. */
  turn: number;
  /** The end of this turn is waited for. */
  isTurnOpen: boolean;
  /** Bytes that requests account for. */
  usefulBytes: number;
  /** Of the others, those that were struck. */
  struckBytes: number;
}

/** @param connectionAgeMs as of a port. */
export function createHttp2Sessions(
  handle: (exchange: Exchange) => void,
  nextRequestId: () => string,
  connectionAgeMs: number,
): Http2Sessions {
  const sessions = new Set<Session>();
  let weighing: NodeJS.Timeout | undefined;

  function accept(socket: Socket, connection: Connection): ServerHttp2Session {
    const http2 = performServerHandshake(socket, options);
    const session: Session = {
      http2,
      socket,
      connection,
      openStreams: 0,
      turn: 0,
      isTurnOpen: false,
      usefulBytes: bytesPerStrike,
      struckBytes: 0,
    };
    const onBody = (bytes: number): void => void (session.usefulBytes += bytes);
    sessions.add(session);
    weighing ??= setInterval(() => sessions.forEach(weigh), weighEveryMs).unref();
    http2.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      stream.on("error", ignore);
      if (stream.destroyed || stream.closed) {
        connection.penalize(strikesOfRapidReset);
        return;
      }
      const turn = turnOf(session);
      session.openStreams++;
      session.usefulBytes += bytesPerRequest;
      const exchange = new Http2Exchange(nextRequestId(), connection, stream, headers, onBody);
      exchange.onClose(() => {
        session.openStreams--;
        if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) {
          connection.penalize(turn === session.turn ? strikesOfRapidReset : 1);
        }
      });
      handle(exchange);
    });
    http2.on("error", () => connection.penalize());
    http2.on("frameError", () => connection.penalize());
    // Who sends no more can neither read nor end a stream; as servers of HTTP/1.1 take them, sockets stay half open.
    socket.once("end", () => http2.destroy());
    const stopLooking = lookAfter(session, connectionAgeMs);
    http2.once("close", () => {
      stopLooking();
      sessions.delete(session);
      if (sessions.size === 0) {
        clearInterval(weighing);
        weighing = undefined;
      }
    });
    return http2;
  }

  return { accept, drain: () => sessions.forEach(({ http2 }) => http2.close()) };
}

/** Frames have a head of nine bytes: three of their length, one of their type, and of what the others say. */
const headBytes = 9;
const resetType = 3;

/** The turn of the event loop in which a stream is opened. */
function turnOf(session: Session): number {
  if (!session.isTurnOpen) {
    session.isTurnOpen = true;
    setImmediate(() => {
      session.isTurnOpen = false;
      session.turn++;
    });
  }
  return session.turn;
}

/**
 * Strikes a connection for the streams that it resets in what it sends with its preface: Node.js opens and closes all of
 * these before anybody hears of the first.
 */
export function strikeResets(beginning: Buffer, connection: Connection): void {
  const resets = countResets(beginning);
  if (resets > 0) {
    connection.penalize(resets * strikesOfRapidReset);
  }
}

/** How many streams are reset in the frames that a connection begins with, after its preface. */
function countResets(frames: Buffer): number {
  let resets = 0;
  for (let at = 0; at + headBytes <= frames.length; at += headBytes + frames.readUIntBE(at, 3)) {
    resets += frames[at + 3] === resetType ? 1 : 0;
  }
  return resets;
}

/**
 * Finds floods of frames of any kind by their one mark: bytes come, and no requests. What floods are made of is read by
 * Node.js itself, which tells nobody.
 */
function weigh(session: Session): void {
  const uselessBytes = session.socket.bytesRead - session.usefulBytes - session.struckBytes;
  const count = Math.floor(uselessBytes / bytesPerStrike);
  if (count > 0) {
    session.struckBytes += count * bytesPerStrike;
    session.connection.penalize(count);
  }
}

/** Closes a connection that is idle for long or old, and one whose other end does not answer. */
function lookAfter(session: Session, connectionAgeMs: number): () => void {
  const { http2 } = session;
  const sinceMs = performance.now();
  let idleLooks = 0;
  let late: NodeJS.Timeout | undefined;
  const timer = setInterval(
    () => {
      if (http2.destroyed) {
        return;
      }
      if (isOld(sinceMs, connectionAgeMs) && !http2.closed) {
        // It takes no new stream, and ends with the last one.
        http2.close();
      }
      if (session.openStreams === 0) {
        idleLooks++;
        if (idleLooks >= maxIdleLooks) {
          http2.close();
        }
        return;
      }
      idleLooks = 0;
      late ??= setTimeout(() => http2.destroy(), pongWithinMs);
      http2.ping(() => {
        clearTimeout(late);
        late = undefined;
      });
    },
    Math.min(longestLookMs, connectionAgeMs),
  ).unref();
  return () => {
    clearInterval(timer);
    clearTimeout(late);
  };
}

const ignore = (): void => undefined;
