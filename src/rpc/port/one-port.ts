/**
 * HTTP/1.1 and cleartext HTTP/2 on one port. A connection's first bytes decide: the HTTP/2 preface goes to the gRPC
 * server, anything else to the HTTP server. The `http.Server` does the listening, since a server that never listens
 * enforces none of its time-outs.
 */
import type { Server as HttpServer } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** Sockets that have not said yet which protocol they speak. */
export interface UndecidedSockets {
  /** Closes them all. */
  close(): void;
}

/** Most connections that have not said yet which protocol they speak; beyond, the oldest is closed. */
export const maxUndecided = 1_000;

/**
 * Makes `server` hand connections that begin with the HTTP/2 preface to `acceptHttp2`. Whoever speaks says so with the
 * first packet, so a flood of silent connections pushes out none but silent ones.
 *
 * @param event what the server calls a connection that is ready to be read: over TLS, one that is secure.
 * @param decideWithinMs a connection that has not sent enough to decide by then is closed.
 */
export function splitByPreface(
  server: HttpServer,
  event: "connection" | "secureConnection",
  acceptHttp2: (socket: Socket) => void,
  decideWithinMs: number,
): { readonly undecided: UndecidedSockets; readonly acceptHttp1: (socket: Duplex) => void } {
  const http1Listeners = server.listeners(event) as ((socket: Duplex) => void)[];
  const undecided = new Set<Socket>();
  const acceptHttp1 = (socket: Duplex): void => http1Listeners.forEach((accept) => accept.call(server, socket));
  server.removeAllListeners(event);
  server.on(event, (socket: Socket) => {
    undecided.add(socket);
    if (undecided.size > maxUndecided) {
      undecided.values().next().value?.destroy();
    }
    const timer = setTimeout(() => socket.destroy(), decideWithinMs);
    let seen: Buffer | undefined;

    const release = (): void => {
      clearTimeout(timer);
      undecided.delete(socket);
      socket.off("readable", look).off("close", release).off("end", giveUp).off("error", giveUp);
    };
    const giveUp = (): void => {
      release();
      socket.destroy();
    };
    const look = (): void => {
      const chunk = socket.read() as Buffer | null;
      if (chunk === null) {
        return;
      }
      seen = seen === undefined ? chunk : Buffer.concat([seen, chunk]);
      const length = Math.min(seen.length, preface.length);
      const matches = seen.compare(preface, 0, length, 0, length) === 0;
      if (matches && seen.length < preface.length) {
        return;
      }
      release();
      socket.unshift(seen);
      if (matches) {
        acceptHttp2(socket);
      } else {
        acceptHttp1(socket);
      }
    };
    socket.on("readable", look).on("close", release).on("end", giveUp).on("error", giveUp);
  });

  return { undecided: { close: () => undecided.forEach((socket) => socket.destroy()) }, acceptHttp1 };
}
