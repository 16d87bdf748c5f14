/**
 * Port or Unix socket that serves HTTP/1.1 and HTTP/2, in cleartext or over TLS. The gate admits every connection, and
 * every request or stream becomes an exchange.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Server as NetServer, type Socket } from "node:net";
import { Server as TlsServer, TLSSocket } from "node:tls";
import { identityOfCertificate, type TlsCredentials } from "../../base/crypto/certificate.js";
import type { RpcError } from "../errors.js";
import type { Exchange } from "../exchange/exchange.js";
import { Http1Exchange } from "../exchange/http1-exchange.js";
import { isReset } from "../exchange/is-reset.js";
import { errorResponse } from "../exchange/responses.js";
import { countAccept, handshakeTurns, requestTurns, startTurns } from "../../base/async/turns.js";
import type { Connection, Gate } from "../gate.js";
import { createHttp1Server } from "./http1-server.js";
import { createHttp2Sessions, isOld, penalizeResets } from "./http2-sessions.js";
import { defaultIdleTimeoutMs, listenOn, portTimeouts, type PortTimeouts, type RpcListener } from "./listen.js";
import { containsSeveral, maxPipelined, parseInPieces, type PieceParser } from "./pipelining.js";
import { checkHead, formatResponse } from "./request-head.js";
import { type Accept, type AcceptVersion, awaitFirstRecord, detectHttpVersion } from "./protocol-detection.js";

/**
 * Time before idle connections close during draining, in milliseconds, so that requests already sent get a response.
 */
const lastRequestsWithinMs = 100;
/** Time before connections without any request close during draining, in milliseconds. */
const firstRequestWithinMs = 1_000;
/** Time for which HTTP/1.1 connections are parsed in pieces after one has sent too many requests, in milliseconds. */
const inPiecesMs = 60_000;

export interface PortDeps {
  readonly handle: (exchange: Exchange) => void;
  readonly gate: Gate;
  readonly nextRequestId: () => string;
  /** TLS credentials; undefined for cleartext. */
  readonly tls?: TlsCredentials | undefined;
  /**
   * Requires both ends to prove their identities by TLS, over HTTP/2 only. Client certificates have no issuer to trust:
   * their key is the identity. Clients without a certificate are rejected.
   */
  readonly isMutual?: boolean;
  /** Closes connections that use HTTP/2. */
  readonly isHttp1Only?: boolean;
  /**
   * Age limit of a connection, in milliseconds; unlimited by default. An old connection finishes the requests in
   * progress, and its client must open another one. A random addition of up to 10 % spreads reconnects.
   */
  readonly connectionAgeMs?: number | undefined;
  /**
   * Time limit in milliseconds for an HTTP/1.1 connection without a request; 60 s by default. HTTP/2 connections have at
   * least `http2IdleTimeout`.
   */
  readonly idleTimeoutMs?: number | undefined;
  /** Other time limits than those of {@link portTimeouts}. */
  readonly timeouts?: Partial<PortTimeouts>;
}

interface OpenConnection {
  /** TCP connection, below TLS if TLS is used. */
  readonly socket: Socket;
  readonly connection: Connection;
  /** True if the connection uses HTTP/2 or has carried a request. */
  isUsed: boolean;
  /** Time of admission, on the clock of `performance.now()`. */
  readonly sinceMs: number;
  session: { close(): void } | undefined;
  /** Socket from which HTTP/1.1 is read; undefined for HTTP/2, and before the version is known. */
  http1: Socket | undefined;
  /** Last request of an HTTP/1.1 connection; undefined once it is complete and its response is sent. */
  last: Http1Exchange | undefined;
  /** True if the parser has rejected what the connection sends. */
  isRejected: boolean;
  /** Parser of an HTTP/1.1 connection that is parsed in pieces. */
  pieces: PieceParser | undefined;
}

export function createPort(deps: PortDeps): RpcListener {
  const { handle, gate, nextRequestId, tls, isMutual = false, isHttp1Only = false, connectionAgeMs = Infinity } = deps;
  const { idleTimeoutMs = defaultIdleTimeoutMs } = deps;
  const timeouts = { ...portTimeouts, ...deps.timeouts };
  const { headersTimeout } = timeouts;
  const open = new Set<OpenConnection>();
  const bySocket = new WeakMap<Socket, OpenConnection>();
  const http2 = createHttp2Sessions(arrive, nextRequestId, {
    connectionAgeMs,
    idleTimeoutMs: Math.max(timeouts.http2IdleTimeout, idleTimeoutMs),
  });
  let isDraining = false;
  /** Time until which connections are parsed in pieces, on the clock of `performance.now()`. */
  let inPiecesUntilMs = 0;
  const server = createHttp1Server(
    { onRequest, onRejected },
    tls === undefined ? undefined : { ...tls, ...(isMutual ? mutualTls : { ALPNCallback: chooseProtocol }) },
    { ...timeouts, keepAliveTimeout: idleTimeoutMs },
  );
  if (tls === undefined) {
    acceptCleartext();
  } else {
    acceptTls();
  }

  function onRequest(request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean): void {
    const entry = bySocket.get(request.socket)!;
    entry.isUsed = true;
    if (isDraining || isOld(entry.sinceMs, connectionAgeMs)) {
      response.shouldKeepAlive = false;
    }
    const { connection } = entry;
    const exchange = new Http1Exchange(nextRequestId(), connection, request, response);
    exchange.awaitsContinue = awaitsContinue;
    entry.last = exchange;
    arrive(exchange, () => {
      if (entry.last === exchange && request.complete) {
        entry.last = undefined;
      }
      if (entry.pieces !== undefined) {
        requestTurns.defer(connection.flow, resume, entry.pieces);
      }
    });
    if (entry.pieces === undefined && connection.unanswered > maxPipelined) {
      parseAllInPieces();
    }
  }

  /**
   * Ends a connection whose parser has rejected what follows. The requests before get their responses first. The error
   * belongs to the last one if its body is incomplete, and is otherwise a response of its own.
   */
  function onRejected(socket: Socket, failure: RpcError): void {
    const entry = bySocket.get(socket);
    if (entry === undefined) {
      socket.destroy();
      return;
    }
    // The parser reports its error again for each later read.
    if (entry.isRejected) {
      return;
    }
    entry.isRejected = true;
    const { connection, last } = entry;
    if (last !== undefined && !last.request.complete) {
      last.response.shouldKeepAlive = false;
      last.rejectBody(failure);
      last.onClose(() => socket.end());
      return;
    }
    const reject = (): void => {
      if (socket.writable) {
        const requestId = nextRequestId();
        socket.end(formatResponse(errorResponse(requestId, failure)));
        gate.record({ requestId, connection, header: () => undefined }, failure.reason);
      }
    };
    if (last === undefined) {
      reject();
    } else {
      last.onClose(reject);
    }
  }

  /** Counts an exchange until it closes, and handles it when it is the turn of its address. */
  function arrive(exchange: Exchange, onClosed?: () => void): void {
    const { connection } = exchange;
    const isAdmitted = connection.arrive();
    exchange.onClose(() => {
      connection.leave();
      onClosed?.();
    });
    if (isAdmitted) {
      requestTurns.run(connection.flow, handleOpen, exchange);
    }
  }

  function handleOpen(exchange: Exchange): void {
    if (exchange.isClosed) {
      return;
    }
    const failure = checkHead(exchange);
    if (failure === undefined) {
      handle(exchange);
    } else {
      exchange.send(errorResponse(exchange.requestId, failure));
      gate.record(exchange, failure.reason);
    }
  }

  /**
   * Has every HTTP/1.1 connection parsed in pieces for a minute. Node.js parses 15 % faster without, and clients send
   * one request at a time, so this starts with the first connection that sends more.
   */
  function parseAllInPieces(): void {
    inPiecesUntilMs = performance.now() + inPiecesMs;
    open.forEach(parseEntryInPieces);
  }

  function parseEntryInPieces(entry: OpenConnection): void {
    const { connection, http1 } = entry;
    if (http1 !== undefined) {
      entry.pieces ??= parseInPieces(
        http1,
        () => connection.unanswered < maxPipelined,
        () => entry.last?.expectedBody ?? 0,
        (bytes) => connection.wait(bytes),
      );
    }
  }

  function acceptCleartext(): void {
    const acceptHttp1 = takeOver("connection", (socket) => {
      const entry = admit(socket);
      if (entry !== undefined) {
        requestTurns.run(entry.connection.flow, detect, entry);
      }
    });
    const detect = (entry: OpenConnection): void => detectVersion(entry.socket, entry, acceptHttp1);
  }

  function acceptTls(): void {
    // TLS creates another socket, which shares only the remote address with the TCP socket.
    const handshaking = new Map<string, OpenConnection>();
    const startTls = takeOver("connection", (socket) => {
      const entry = admit(socket);
      if (entry !== undefined) {
        const remoteEnd = remoteEndOf(socket);
        handshaking.set(remoteEnd, entry);
        socket.once("close", () => handshaking.get(remoteEnd) === entry && handshaking.delete(remoteEnd));
        awaitFirstRecord(socket, headersTimeout, () => handshakeTurns.defer(entry.connection.flow, startTls, socket));
      }
    });
    const acceptHttp1 = takeOver("secureConnection", (socket) => {
      const entry = handshaking.get(remoteEndOf(socket));
      if (entry === undefined || (isMutual && !identify(socket, entry.connection))) {
        socket.destroy();
        return;
      }
      bySocket.set(socket, entry);
      detectVersion(socket, entry, acceptHttp1);
    });
    server.on("tlsClientError", (_error: Error, socket: Socket) => socket.destroy());
  }

  /** Replaces the listeners of a server event by another listener. Returns a function that calls the replaced ones. */
  function takeOver(event: "connection" | "secureConnection", listener: Accept): Accept {
    const listeners = server.listeners(event) as Accept[];
    server.removeAllListeners(event);
    server.on(event, listener);
    return (socket) => listeners.forEach((accept) => accept.call(server, socket));
  }

  /** Admits a connection; returns undefined if the gate rejected it, and closes it then. */
  function admit(socket: Socket): OpenConnection | undefined {
    // Node.js accepts one connection in each tick, and others may wait.
    countAccept();
    socket.on("error", () => socket.destroy());
    if (isReset(socket)) {
      socket.destroy();
      return undefined;
    }
    const connection = gate.connect(socket.remoteAddress ?? "", () => close(entry));
    if (connection === undefined) {
      socket.destroy();
      return undefined;
    }
    const sinceMs = performance.now();
    const entry: OpenConnection = {
      ...{ socket, connection, sinceMs, isUsed: false },
      ...{ session: undefined, http1: undefined, last: undefined, isRejected: false, pieces: undefined },
    };
    open.add(entry);
    bySocket.set(socket, entry);
    socket.once("close", () => {
      open.delete(entry);
      connection.end();
    });
    return entry;
  }

  /** Detects the HTTP version of an admitted connection, and passes the connection on. */
  function detectVersion(socket: Socket, entry: OpenConnection, acceptHttp1: Accept): void {
    if (socket.destroyed) {
      return;
    }
    const acceptHttp2: AcceptVersion = (_, firstBytes) => {
      entry.isUsed = true;
      penalizeResets(firstBytes, entry.connection);
      startTurns.defer(entry.connection.flow, startSession, undefined);
    };
    const startSession = (): void => {
      if (entry.socket.destroyed) {
        socket.destroy();
      } else if (!socket.destroyed) {
        entry.session = http2.accept(socket, entry.connection);
      }
    };
    const accept: AcceptVersion = (_, firstBytes) => {
      acceptHttp1(socket);
      entry.http1 = socket;
      if (performance.now() < inPiecesUntilMs || containsSeveral(firstBytes)) {
        parseEntryInPieces(entry);
      }
    };
    const reject: Accept = () => socket.destroy();
    detectHttpVersion(socket, isMutual ? reject : accept, isHttp1Only ? reject : acceptHttp2, headersTimeout);
  }

  function closeThose(matches: (entry: OpenConnection) => boolean): void {
    [...open].filter(matches).forEach(close);
  }

  return {
    listen: (address) => listenOn(server, address),
    ...(server instanceof TlsServer && {
      renewTls: (credentials: TlsCredentials) => server.setSecureContext(credentials),
    }),
    async drain(graceMs) {
      isDraining = true;
      http2.drain();
      // The close() method of http.Server would close idle connections on which a request may be arriving.
      const closed = new Promise<void>((resolve) => {
        NetServer.prototype.close.call(server, () => resolve());
      });
      const closeIdle = setInterval(() => {
        server.closeIdleConnections();
        // Some connections admitted earlier detect HTTP/2 only now.
        http2.drain();
        closeThose(({ isUsed, socket }) => !isUsed && socket.bytesRead === 0);
      }, lastRequestsWithinMs);
      const closeUnused = setTimeout(() => closeThose(({ isUsed }) => !isUsed), firstRequestWithinMs);
      const closeAll = setTimeout(() => closeThose(() => true), graceMs);
      await closed;
      clearInterval(closeIdle);
      clearTimeout(closeUnused);
      clearTimeout(closeAll);
      server.close();
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

const resume = (pieces: PieceParser): void => pieces.resume();

const mutualTls = {
  requestCert: true,
  rejectUnauthorized: false,
  minVersion: "TLSv1.3",
  ALPNProtocols: ["h2"],
} as const;

/** Records the identity that the other end proved. Returns false if there is none, or if the protocol is not HTTP/2. */
function identify(socket: Socket, connection: Connection): boolean {
  if (!(socket instanceof TLSSocket)) {
    return false;
  }
  connection.provenIdentity = identityOfCertificate(socket.getPeerCertificate().raw);
  return connection.provenIdentity !== undefined && socket.alpnProtocol === "h2";
}

function remoteEndOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function chooseProtocol({ protocols }: { readonly protocols: string[] }): string | undefined {
  return ["h2", "http/1.1"].find((protocol) => protocols.includes(protocol));
}

/** Creates a port that serves HTTP/1.1 only, in cleartext. */
export function createHttp1Port(
  deps: Pick<PortDeps, "gate" | "nextRequestId">,
  handle: (exchange: Http1Exchange) => void,
): RpcListener {
  return createPort({ ...deps, handle: (exchange) => handle(exchange as Http1Exchange), isHttp1Only: true });
}
