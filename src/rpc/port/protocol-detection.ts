/**
 * Protocol detection for HTTP/1.1 and HTTP/2 on one port, by the HTTP/2 preface in the first bytes of a connection. The
 * protocol of each request or stream is determined later.
 */
import type { Socket } from "node:net";

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

export type Accept = (socket: Socket) => void;
/** Accepts a connection, with the bytes that have been received; those of HTTP/1.1 stay in the socket. */
export type AcceptVersion = (socket: Socket, firstBytes: Buffer) => void;

/**
 * Waits for the first bytes of a connection, which stay in the socket.
 *
 * @param withinMs time limit in milliseconds; the connection is then closed.
 */
export function awaitFirstBytes(socket: Socket, withinMs: number, onBytes: () => void): void {
  const timer = setTimeout(() => socket.destroy(), withinMs);
  const release = (): void => {
    clearTimeout(timer);
    socket.off("readable", check).off("close", release).off("end", close);
  };
  const close = (): void => {
    release();
    socket.destroy();
  };
  const check = (): void => {
    if (socket.readableLength > 0) {
      release();
      onBytes();
    }
  };
  socket.on("readable", check).on("close", release).on("end", close);
}

/**
 * Waits for the first bytes of a connection, and passes the connection on together with them.
 *
 * @param acceptHttp2 called with the bytes that followed the preface.
 * @param withinMs time limit for the detection, in milliseconds; the connection is then closed.
 */
export function detectHttpVersion(
  socket: Socket,
  acceptHttp1: AcceptVersion,
  acceptHttp2: AcceptVersion,
  withinMs: number,
): void {
  const timer = setTimeout(() => socket.destroy(), withinMs);
  let received: Buffer | undefined;

  const release = (): void => {
    clearTimeout(timer);
    socket.off("readable", check).off("close", release).off("end", close).off("error", close);
  };
  const close = (): void => {
    release();
    socket.destroy();
  };
  const check = (): void => {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) {
      return;
    }
    received = received === undefined ? chunk : Buffer.concat([received, chunk]);
    const length = Math.min(received.length, preface.length);
    const matches = received.compare(preface, 0, length, 0, length) === 0;
    if (matches && received.length < preface.length) {
      return;
    }
    release();
    socket.unshift(received);
    if (matches) {
      acceptHttp2(socket, received.subarray(preface.length));
    } else {
      acceptHttp1(socket, received);
    }
  };
  socket.on("readable", check).on("close", release).on("end", close).on("error", close);
}
