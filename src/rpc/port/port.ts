/**
 * Port or Unix socket that serves HTTP/1.1 and HTTP/2, in cleartext or over TLS. The gate admits every connection, and
 * every request or stream becomes an exchange.
 */
import type { Server } from "node:http";
import { Server as NetServer, type Socket } from "node:net";
import { Server as TlsServer, TLSSocket } from "node:tls";
import { identityOfCertificate, type TlsCredentials } from "../../base/crypto/certificate.js";
import type { Exchange } from "../exchange/exchange.js";
import { Http1Exchange } from "../exchange/http1-exchange.js";
import type { Connection, Gate } from "../gate.js";
import { createOpenConnections, type OpenConnections, type OpenConnection } from "./open-connections.js";
import { createHttp1Server, headersWithinMs } from "./http1-server.js";
import { createHttp2Sessions, type Http2Sessions, penalizeResets } from "./http2-sessions.js";
import { isOld, listenOn, type RpcListener } from "./listen.js";
import { type Accept, detectHttpVersion } from "./protocol-detection.js";

/**
 * Time before idle connections close during draining, in milliseconds, so that requests already sent get a response.
 */
const lastRequestsWithinMs = 100;
/** Time before connections without any request close during draining, in milliseconds. */
const firstRequestWithinMs = 1_000;

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
  /**
   * Age limit of a connection, in milliseconds; unlimited by default. An old connection finishes the requests in
   * progress, and its client must open another one. A random addition of up to 10 % spreads reconnects.
   */
  readonly connectionAgeMs?: number | undefined;
}

/** Creates the listener, not bound yet. */
export function createPort(deps: PortDeps): RpcListener {
  const { handle, gate, nextRequestId, tls, isMutual = false, connectionAgeMs = Infinity } = deps;
  const openConnections = createOpenConnections(gate);
  const http2 = createHttp2Sessions(handle, nextRequestId, connectionAgeMs);
  let isDraining = false;
  const server = createHttp1Server(
    (request, response) => {
      const entry = openConnections.of(request.socket);
      entry.isUsed = true;
      if (isDraining || isOld(entry.sinceMs, connectionAgeMs)) {
        response.shouldKeepAlive = false;
      }
      handle(new Http1Exchange(nextRequestId(), entry.connection, request, response));
    },
    tls === undefined ? undefined : { ...tls, ...(isMutual ? mutualTls : { ALPNCallback: chooseProtocol }) },
  );

  /** Detects the HTTP version of an admitted connection. */
  const detectVersion = (socket: Socket, entry: OpenConnection, acceptHttp1: Accept): void => {
    const acceptHttp2 = (_: Socket, firstBytes: Buffer): void => {
      entry.isUsed = true;
      penalizeResets(firstBytes, entry.connection);
      if (entry.socket.destroyed) {
        socket.destroy();
        return;
      }
      entry.session = http2.accept(socket, entry.connection);
    };
    detectHttpVersion(socket, isMutual ? () => socket.destroy() : acceptHttp1, acceptHttp2, headersWithinMs);
  };
  if (tls === undefined) {
    acceptCleartext(server, openConnections, detectVersion);
  } else {
    acceptTls(server, openConnections, detectVersion, isMutual);
  }

  return {
    listen: (address) => listenOn(server, address),
    ...(server instanceof TlsServer && {
      renewTls: (credentials: TlsCredentials) => server.setSecureContext(credentials),
    }),
    async drain(graceMs) {
      isDraining = true;
      http2.drain();
      await drainServer(server, { openConnections, http2 }, graceMs);
    },
  };
}

/** Detects the HTTP version of an admitted connection, and passes the connection to `acceptHttp1` or the HTTP/2 server. */
type DetectVersion = (socket: Socket, entry: OpenConnection, acceptHttp1: Accept) => void;

function acceptCleartext(server: Server, openConnections: OpenConnections, detectVersion: DetectVersion): void {
  const acceptHttp1 = takeOver(server, "connection", (socket) => {
    const entry = openConnections.admit(socket);
    if (entry !== undefined) {
      detectVersion(socket, entry, acceptHttp1);
    }
  });
}

function acceptTls(
  server: Server,
  openConnections: OpenConnections,
  detectVersion: DetectVersion,
  isMutual: boolean,
): void {
  // TLS creates another socket, which shares only the remote address with the TCP socket.
  const handshaking = new Map<string, OpenConnection>();
  const startTls = takeOver(server, "connection", (socket) => {
    const entry = openConnections.admit(socket);
    if (entry !== undefined) {
      const remoteEnd = remoteEndOf(socket);
      handshaking.set(remoteEnd, entry);
      socket.once("close", () => handshaking.get(remoteEnd) === entry && handshaking.delete(remoteEnd));
      startTls(socket);
    }
  });
  const acceptHttp1 = takeOver(server, "secureConnection", (socket) => {
    const entry = handshaking.get(remoteEndOf(socket));
    if (entry === undefined || (isMutual && !identify(socket, entry.connection))) {
      socket.destroy();
      return;
    }
    openConnections.alias(socket, entry);
    detectVersion(socket, entry, acceptHttp1);
  });
  server.on("tlsClientError", (_error: Error, socket: Socket) => socket.destroy());
}

interface Connections {
  readonly openConnections: OpenConnections;
  readonly http2: Http2Sessions;
}

async function drainServer(server: Server, { openConnections, http2 }: Connections, graceMs: number): Promise<void> {
  // The close() method of http.Server would close idle connections on which a request may be arriving.
  const closed = new Promise<void>((resolve) => {
    NetServer.prototype.close.call(server, () => resolve());
  });
  const closeIdle = setInterval(() => {
    server.closeIdleConnections();
    // Some connections admitted earlier detect HTTP/2 only now.
    http2.drain();
    openConnections.abort(({ isUsed, socket }) => !isUsed && socket.bytesRead === 0);
  }, lastRequestsWithinMs);
  const closeUnused = setTimeout(() => openConnections.abort(({ isUsed }) => !isUsed), firstRequestWithinMs);
  const abortAll = setTimeout(() => openConnections.abort(() => true), graceMs);
  await closed;
  clearInterval(closeIdle);
  clearTimeout(closeUnused);
  clearTimeout(abortAll);
  server.close();
}

/** Replaces the listeners of a server event by another listener. Returns a function that calls the replaced ones. */
function takeOver(server: Server, event: "connection" | "secureConnection", listener: Accept): Accept {
  const listeners = server.listeners(event) as Accept[];
  server.removeAllListeners(event);
  server.on(event, listener);
  return (socket) => listeners.forEach((accept) => accept.call(server, socket));
}

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
