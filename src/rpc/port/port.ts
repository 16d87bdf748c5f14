/**
 * A port, or a Unix socket: HTTP/1.1 and HTTP/2 side by side, cleartext or TLS, every connection let in by the gate and
 * every request or stream made an exchange. It drains.
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
import { createHttp2Sessions, type Http2Sessions, strikeResets } from "./http2-sessions.js";
import { isOld, listenOn, type RpcListener } from "./listen.js";
import { type Accept, detectHttpVersion } from "./protocol-detection.js";

/** How long idle connections are kept after the port closed, so that a request already on its way is answered. */
const lastRequestsWithinMs = 100;
/** How long a connection on which no request has been made is kept after the port closed. */
const firstRequestWithinMs = 1_000;

export interface PortDeps {
  readonly handle: (exchange: Exchange) => void;
  readonly gate: Gate;
  readonly nextRequestId: () => string;
  /** Undefined for cleartext. */
  readonly tls?: TlsCredentials | undefined;
  /**
   * Both ends prove their identities by TLS, over HTTP/2 alone. The certificates of clients are signed by nobody: what
   * counts is the key in them, and a client without one is turned away.
   */
  readonly isMutual?: boolean;
  /**
   * How old a connection gets, in milliseconds, roughly, so that those of one moment do not all end at another: then its
   * client is told to make a new one, and what is under way on it goes on. For ever when left out.
   */
  readonly connectionAgeMs?: number | undefined;
}

/** Builds the listener, not bound yet. */
export function createPort(deps: PortDeps): RpcListener {
  const { handle, gate, nextRequestId, tls, isMutual = false, connectionAgeMs = Infinity } = deps;
  const entrances = createOpenConnections(gate);
  const http2 = createHttp2Sessions(handle, nextRequestId, connectionAgeMs);
  let isDraining = false;
  const server = createHttp1Server(
    (request, response) => {
      const entry = entrances.of(request.socket);
      entry.isUsed = true;
      if (isDraining || isOld(entry.sinceMs, connectionAgeMs)) {
        response.shouldKeepAlive = false;
      }
      handle(new Http1Exchange(nextRequestId(), entry.connection, request, response));
    },
    tls === undefined ? undefined : { ...tls, ...(isMutual ? mutualTls : { ALPNCallback: chooseProtocol }) },
  );

  /** Finds out which HTTP a connection speaks, once it is known to be let in. */
  const decide = (socket: Socket, entry: OpenConnection, acceptHttp1: Accept): void => {
    const acceptHttp2 = (_: Socket, beginning: Buffer): void => {
      entry.isUsed = true;
      strikeResets(beginning, entry.connection);
      if (entry.socket.destroyed) {
        socket.destroy();
        return;
      }
      entry.session = http2.accept(socket, entry.connection);
    };
    detectHttpVersion(socket, isMutual ? () => socket.destroy() : acceptHttp1, acceptHttp2, headersWithinMs);
  };
  if (tls === undefined) {
    acceptCleartext(server, entrances, decide);
  } else {
    acceptTls(server, entrances, decide, isMutual);
  }

  return {
    listen: (address) => listenOn(server, address),
    ...(server instanceof TlsServer && {
      renewTls: (credentials: TlsCredentials) => server.setSecureContext(credentials),
    }),
    async drain(graceMs) {
      isDraining = true;
      http2.drain();
      await drainServer(server, { entrances, http2 }, graceMs);
    },
  };
}

/** Takes a connection that was let in, and one way to go on with it. */
type Decide = (socket: Socket, entry: OpenConnection, acceptHttp1: Accept) => void;

function acceptCleartext(server: Server, entrances: OpenConnections, decide: Decide): void {
  const acceptHttp1 = takeOver(server, "connection", (socket) => {
    const entry = entrances.enter(socket);
    if (entry !== undefined) {
      decide(socket, entry, acceptHttp1);
    }
  });
}

function acceptTls(server: Server, entrances: OpenConnections, decide: Decide, isMutual: boolean): void {
  // TLS makes a socket of its own, which has nothing in common with the one beneath but the other end's address.
  const handshaking = new Map<string, OpenConnection>();
  const beginTls = takeOver(server, "connection", (socket) => {
    const entry = entrances.enter(socket);
    if (entry !== undefined) {
      const name = otherEndOf(socket);
      handshaking.set(name, entry);
      socket.once("close", () => handshaking.get(name) === entry && handshaking.delete(name));
      beginTls(socket);
    }
  });
  const acceptHttp1 = takeOver(server, "secureConnection", (socket) => {
    const entry = handshaking.get(otherEndOf(socket));
    if (entry === undefined || (isMutual && !identify(socket, entry.connection))) {
      socket.destroy();
      return;
    }
    entrances.alias(socket, entry);
    decide(socket, entry, acceptHttp1);
  });
  server.on("tlsClientError", (_error: Error, socket: Socket) => socket.destroy());
}

interface Connections {
  readonly entrances: OpenConnections;
  readonly http2: Http2Sessions;
}

async function drainServer(server: Server, { entrances, http2 }: Connections, graceMs: number): Promise<void> {
  // http.Server's own close() would cut idle connections on which a request may be arriving at this moment.
  const closed = new Promise<void>((resolve) => {
    NetServer.prototype.close.call(server, () => resolve());
  });
  const closeIdle = setInterval(() => {
    server.closeIdleConnections();
    // Who was let in before begins to speak HTTP/2 only now.
    http2.drain();
    entrances.cut(({ isUsed, socket }) => !isUsed && socket.bytesRead === 0);
  }, lastRequestsWithinMs);
  const closeUnused = setTimeout(() => entrances.cut(({ isUsed }) => !isUsed), firstRequestWithinMs);
  const giveUp = setTimeout(() => entrances.cut(() => true), graceMs);
  await closed;
  clearInterval(closeIdle);
  clearTimeout(closeUnused);
  clearTimeout(giveUp);
  server.close();
}

/** Puts a listener before those that a server has for an event, and gives a way to call them. */
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

/** Notes which identity the other end has proved; false where it has none. */
function identify(socket: Socket, connection: Connection): boolean {
  if (!(socket instanceof TLSSocket)) {
    return false;
  }
  connection.provenIdentity = identityOfCertificate(socket.getPeerCertificate().raw);
  return connection.provenIdentity !== undefined && socket.alpnProtocol === "h2";
}

function otherEndOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function chooseProtocol({ protocols }: { readonly protocols: string[] }): string | undefined {
  return ["h2", "http/1.1"].find((protocol) => protocols.includes(protocol));
}
