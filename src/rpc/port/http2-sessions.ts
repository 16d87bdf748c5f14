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
  type Settings,
} from "node:http2";
import type { Socket } from "node:net";
import type { Exchange } from "../exchange/exchange.js";
import { Http2Exchange } from "../exchange/http2-exchange.js";
import type { Connection } from "../gate.js";

const maxHeaderBytes = 16 * 1024;

/**
 * Settings of HTTP/2, besides the limit on streams. The header table keeps its default size: clients must acknowledge a
 * smaller one, but nginx does not, and nghttp2 would end the connection. `penalizeBytes` limits the abuse of references to
 * large entries.
 */
const settings: Settings = {
  enablePush: false,
  maxHeaderListSize: maxHeaderBytes,
  initialWindowSize: 256 * 1024,
};

const options: ServerOptions = {
  maxHeaderListPairs: 100,
  // Clients open streams before they know the limit. nghttp2 refuses those beyond it as invalid frames, Node.js itself
  // those of a session without memory.
  maxSessionInvalidFrames: 256,
  maxSessionRejectedStreams: 20,
  // In megabytes. The gate limits the bytes of responses.
  maxSessionMemory: 32,
};

/** Longest interval between checks for idle and unresponsive connections, in milliseconds. */
const maxPollMs = 60_000;
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

/** Time limits of a connection in milliseconds. */
interface ConnectionLimits {
  readonly connectionAgeMs: number;
  /** Limit without an open stream. */
  readonly idleTimeoutMs: number;
}

export function createHttp2Sessions(
  handle: (exchange: Exchange) => void,
  nextRequestId: () => string,
  limits: ConnectionLimits,
) {
  const sessions = new Set<Session>();
  let sampler: NodeJS.Timeout | undefined;

  /** Creates a session for a connection. A closed session opens no more streams. */
  function accept(socket: Socket, connection: Connection): Pick<ServerHttp2Session, "close"> {
    const session = new Session(socket, connection);
    const { http2 } = session;
    sessions.add(session);
    sampler ??= setInterval(() => sessions.forEach((each) => each.penalizeBytes()), sampleEveryMs).unref();
    http2.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      if (session.openStream(stream)) {
        const onBody = (bytes: number): void => void (session.usefulBytes += bytes);
        handle(new Http2Exchange(nextRequestId(), connection, stream, headers, onBody));
      }
    });
    http2.on("error", () => connection.penalize());
    http2.on("frameError", () => connection.penalize());
    // A client that sends no more can neither read nor end a stream. HTTP/1.1 servers leave such sockets half open.
    socket.once("end", () => http2.destroy());
    const stopPolling = session.poll(limits);
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

  /** Rejects new streams, and closes each connection after its streams in progress. */
  const drain = (): void => sessions.forEach(({ http2 }) => http2.close());
  return { accept, drain };
}

class Session {
  readonly http2: ServerHttp2Session;
  /** Bytes that requests account for. */
  usefulBytes = bytesPerPenalty;
  private openStreams = 0;
  /** Time at which the last stream closed, on the clock of `performance.now()`. */
  private idleSinceMs = performance.now();
  /**
   * Number that increments after each tick in which streams were opened. Streams with the same number came in one read.
   */
  private tick = 0;
  private isTickOpen = false;
  /** Other bytes, for which the connection was already penalized. */
  private penalizedBytes = 0;

  constructor(
    private readonly socket: Socket,
    private readonly connection: Connection,
  ) {
    const { maxStreams: maxConcurrentStreams } = connection;
    // Streams beyond the limit are refused before they become objects.
    this.http2 = performServerHandshake(socket, { ...options, settings: { ...settings, maxConcurrentStreams } });
  }

  /** Counts a stream until it closes. Returns false if the client has already reset it. */
  openStream(stream: ServerHttp2Stream): boolean {
    stream.on("error", ignore);
    if (stream.destroyed || stream.closed) {
      this.connection.penalize(rapidResetPenalties);
      return false;
    }
    if (!this.isTickOpen) {
      this.isTickOpen = true;
      setImmediate(() => {
        this.isTickOpen = false;
        this.tick++;
      });
    }
    const { tick } = this;
    this.openStreams++;
    this.usefulBytes += bytesPerRequest;
    stream.once("close", () => {
      this.openStreams--;
      this.idleSinceMs = performance.now();
      if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) {
        this.connection.penalize(tick === this.tick ? rapidResetPenalties : 1);
      }
    });
    return true;
  }

  /**
   * Penalizes the connection for bytes that belong to no request, to detect floods of any frame type. Node.js reads
   * these frames without reporting them.
   */
  penalizeBytes(): void {
    const uselessBytes = this.socket.bytesRead - this.usefulBytes - this.penalizedBytes;
    const count = Math.floor(uselessBytes / bytesPerPenalty);
    if (count > 0) {
      this.penalizedBytes += count * bytesPerPenalty;
      this.connection.penalize(count);
    }
  }

  /**
   * Closes the connection when it is idle for long, too old, or unresponsive to pings.
   *
   * @returns a function that stops the checks.
   */
  poll({ connectionAgeMs, idleTimeoutMs }: ConnectionLimits): () => void {
    const { http2 } = this;
    const sinceMs = performance.now();
    let closeTimer: NodeJS.Timeout | undefined;
    const check = (): void => {
      if (http2.destroyed) {
        return;
      }
      const isIdle = this.openStreams === 0 && performance.now() - this.idleSinceMs >= idleTimeoutMs;
      if (isIdle || isOld(sinceMs, connectionAgeMs)) {
        // The session rejects new streams, and ends with its last one.
        http2.close();
      }
      if (this.openStreams > 0) {
        closeTimer ??= setTimeout(() => http2.destroy(), pongWithinMs);
        http2.ping(() => {
          clearTimeout(closeTimer);
          closeTimer = undefined;
        });
      }
    };
    const timer = setInterval(check, Math.min(maxPollMs, connectionAgeMs, idleTimeoutMs)).unref();
    return () => {
      clearInterval(timer);
      clearTimeout(closeTimer);
    };
  }
}

const ignore = (): void => undefined;

/**
 * Returns true if the age limit has passed. Adds up to 10 % at random, so that connections opened together do not all
 * end together.
 */
export function isOld(sinceMs: number, ageMs: number): boolean {
  return ageMs !== Infinity && performance.now() - sinceMs > ageMs * (1 + Math.random() / 10);
}

/** Length of a frame header in bytes: three bytes of length, one of type, then flags and stream. */
const frameHeaderBytes = 9;
const rstStreamType = 3;

/**
 * Penalizes a connection for streams that are reset in the same read as the preface. Node.js opens and closes these
 * streams before it reports the first one.
 *
 * @param firstBytes frames after the preface.
 */
export function penalizeResets(firstBytes: Buffer, connection: Connection): void {
  let resets = 0;
  for (let i = 0; i + frameHeaderBytes <= firstBytes.length; i += frameHeaderBytes + firstBytes.readUIntBE(i, 3)) {
    resets += firstBytes[i + 3] === rstStreamType ? 1 : 0;
  }
  if (resets > 0) {
    connection.penalize(resets * rapidResetPenalties);
  }
}
