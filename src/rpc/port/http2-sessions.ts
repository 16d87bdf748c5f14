/**
 * HTTP/2 sessions of a port. Each stream becomes an exchange, and connections that abuse the protocol are penalized.
 */
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

/** Limit on the headers of a request, in bytes. */
const maxHeaderBytes = 16 * 1024;

/**
 * Options of HTTP/2. The header table keeps its default size: clients must acknowledge a smaller one, but nginx does
 * not, and nghttp2 would end the connection. `penalizeBytes` limits the abuse of references to large entries.
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
  // In megabytes. The gate limits the bytes of responses.
  maxSessionMemory: 32,
};

/** Longest interval between checks for idle and unresponsive connections, in milliseconds. */
const maxPollMs = 60_000;
/** Limit on consecutive checks without an open stream; the connection is then closed. */
const maxIdlePolls = 10;
/**
 * Time limit for the response to a ping, in milliseconds. Pings are sent while streams are open, to detect a vanished
 * peer.
 */
const pongWithinMs = 20_000;

/** Interval between checks of the bytes that connections have sent, in milliseconds. */
const sampleEveryMs = 100;
/** Bytes that a request may use besides its body: headers of maximum size, and frames that maintain the connection. */
const bytesPerRequest = maxHeaderBytes;
/** Bytes per penalty, beyond those that requests account for. */
const bytesPerPenalty = 8 * 1024;
/**
 * Penalties for a stream that is opened and reset in the same read: as many as for five aborted streams. The client
 * never waited for a response.
 */
const rapidResetPenalties = 5;

export interface Http2Sessions {
  /** Creates a session for a connection. A closed session opens no more streams. */
  accept(socket: Socket, connection: Connection): Pick<ServerHttp2Session, "close">;
  /** Rejects new streams, and closes each connection after its streams in progress. */
  drain(): void;
}

/** HTTP/2 connection with its usage. */
interface Session {
  readonly http2: ServerHttp2Session;
  readonly socket: Socket;
  readonly connection: Connection;
  openStreams: number;
  /**
   * Number that increments after each tick in which streams were opened. Streams with the same number came in one read.
   */
  tick: number;
  /** True until the end of the current tick. */
  isTickOpen: boolean;
  /** Bytes that requests account for. */
  usefulBytes: number;
  /** Other bytes, for which the connection was already penalized. */
  penalizedBytes: number;
}

/** @param connectionAgeMs age limit of a connection, as in `PortDeps`. */
export function createHttp2Sessions(
  handle: (exchange: Exchange) => void,
  nextRequestId: () => string,
  connectionAgeMs: number,
): Http2Sessions {
  const sessions = new Set<Session>();
  let sampler: NodeJS.Timeout | undefined;

  function accept(socket: Socket, connection: Connection): ServerHttp2Session {
    const http2 = performServerHandshake(socket, options);
    const session: Session = {
      http2,
      socket,
      connection,
      openStreams: 0,
      tick: 0,
      isTickOpen: false,
      usefulBytes: bytesPerPenalty,
      penalizedBytes: 0,
    };
    const onBody = (bytes: number): void => void (session.usefulBytes += bytes);
    sessions.add(session);
    sampler ??= setInterval(() => sessions.forEach(penalizeBytes), sampleEveryMs).unref();
    http2.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      stream.on("error", ignore);
      if (stream.destroyed || stream.closed) {
        connection.penalize(rapidResetPenalties);
        return;
      }
      const tick = tickOf(session);
      session.openStreams++;
      session.usefulBytes += bytesPerRequest;
      const exchange = new Http2Exchange(nextRequestId(), connection, stream, headers, onBody);
      exchange.onClose(() => {
        session.openStreams--;
        if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) {
          connection.penalize(tick === session.tick ? rapidResetPenalties : 1);
        }
      });
      handle(exchange);
    });
    http2.on("error", () => connection.penalize());
    http2.on("frameError", () => connection.penalize());
    // A client that sends no more can neither read nor end a stream. HTTP/1.1 servers leave such sockets half open.
    socket.once("end", () => http2.destroy());
    const stopPolling = pollSession(session, connectionAgeMs);
    http2.once("close", () => {
      stopPolling();
      sessions.delete(session);
      if (sessions.size === 0) {
        clearInterval(sampler);
        sampler = undefined;
      }
    });
    return http2;
  }

  return { accept, drain: () => sessions.forEach(({ http2 }) => http2.close()) };
}

/** Length of a frame header in bytes: three bytes of length, one of type, then flags and stream. */
const frameHeaderBytes = 9;
const rstStreamType = 3;

/** Returns the number of the tick in which a stream is opened. */
function tickOf(session: Session): number {
  if (!session.isTickOpen) {
    session.isTickOpen = true;
    setImmediate(() => {
      session.isTickOpen = false;
      session.tick++;
    });
  }
  return session.tick;
}

/**
 * Penalizes a connection for streams that are reset in the same read as the preface. Node.js opens and closes these
 * streams before it reports the first one.
 *
 * @param firstBytes bytes after the preface.
 */
export function penalizeResets(firstBytes: Buffer, connection: Connection): void {
  const resets = countResets(firstBytes);
  if (resets > 0) {
    connection.penalize(resets * rapidResetPenalties);
  }
}

/** Counts the reset streams in the first frames of a connection, after its preface. */
function countResets(frames: Buffer): number {
  let resets = 0;
  for (let i = 0; i + frameHeaderBytes <= frames.length; i += frameHeaderBytes + frames.readUIntBE(i, 3)) {
    resets += frames[i + 3] === rstStreamType ? 1 : 0;
  }
  return resets;
}

/**
 * Penalizes connections for bytes that belong to no request, to detect floods of any frame type. Node.js reads these
 * frames without reporting them.
 */
function penalizeBytes(session: Session): void {
  const uselessBytes = session.socket.bytesRead - session.usefulBytes - session.penalizedBytes;
  const count = Math.floor(uselessBytes / bytesPerPenalty);
  if (count > 0) {
    session.penalizedBytes += count * bytesPerPenalty;
    session.connection.penalize(count);
  }
}

/**
 * Closes a connection that is idle for long, too old, or unresponsive to pings.
 *
 * @returns a function that stops the checks.
 */
function pollSession(session: Session, connectionAgeMs: number): () => void {
  const { http2 } = session;
  const sinceMs = performance.now();
  let idlePolls = 0;
  let closeTimer: NodeJS.Timeout | undefined;
  const timer = setInterval(
    () => {
      if (http2.destroyed) {
        return;
      }
      if (isOld(sinceMs, connectionAgeMs) && !http2.closed) {
        // The session rejects new streams, and ends with its last one.
        http2.close();
      }
      if (session.openStreams === 0) {
        idlePolls++;
        if (idlePolls >= maxIdlePolls) {
          http2.close();
        }
        return;
      }
      idlePolls = 0;
      closeTimer ??= setTimeout(() => http2.destroy(), pongWithinMs);
      http2.ping(() => {
        clearTimeout(closeTimer);
        closeTimer = undefined;
      });
    },
    Math.min(maxPollMs, connectionAgeMs),
  ).unref();
  return () => {
    clearInterval(timer);
    clearTimeout(closeTimer);
  };
}

const ignore = (): void => undefined;
