/**
 * Protocol detection for HTTP/1.1 and HTTP/2 on one port, by the HTTP/2 preface in the first bytes of a connection. The
 * protocol of each request or stream is determined later.
 */
import type { Socket } from "node:net";

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** Bytes of the header of a TLS record: its type, version (2), and the length of what follows (2). */
const recordHeaderBytes = 5;
/** Type of a TLS record that holds messages of a handshake. */
const handshakeRecord = 22;
/** Limit on what follows a record's header (RFC 8446, section 5.1). */
const maxRecordBytes = 2 ** 14;

export type Accept = (socket: Socket) => void;
/** Accepts a connection, with the bytes that have been received; those of HTTP/1.1 stay in the socket. */
export type AcceptVersion = (socket: Socket, firstBytes: Buffer) => void;

/**
 * Waits for the first record of a TLS connection, which stays in the socket. A handshake then has all that it needs for its
 * first step, so that a client that sends a byte causes no work. What is no handshake is passed on at once, to be rejected.
 *
 * @param withinMs time limit in milliseconds; the connection is then closed.
 */
export function awaitFirstRecord(socket: Socket, withinMs: number, onRecord: () => void): void {
  collectFirstBytes(socket, withinMs, isRecordComplete, onRecord);
}

function isRecordComplete(received: Buffer): boolean {
  if (received[0] !== handshakeRecord) {
    return true;
  }
  const length = received.length < recordHeaderBytes ? Infinity : received.readUInt16BE(3);
  return received.length >= recordHeaderBytes + length || (length > maxRecordBytes && length < Infinity);
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
  const isDecided = (received: Buffer): boolean => received.length >= preface.length || !startsPreface(received);
  collectFirstBytes(socket, withinMs, isDecided, (received) => {
    if (startsPreface(received)) {
      acceptHttp2(socket, received.subarray(preface.length));
    } else {
      acceptHttp1(socket, received);
    }
  });
}

/** Returns true for bytes that start with the preface, or are the start of it. */
function startsPreface(received: Buffer): boolean {
  const length = Math.min(received.length, preface.length);
  return received.compare(preface, 0, length, 0, length) === 0;
}

/** Waits until the first bytes of a connection are complete. They stay in the socket. */
function collectFirstBytes(
  socket: Socket,
  withinMs: number,
  isComplete: (received: Buffer) => boolean,
  onComplete: (received: Buffer) => void,
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
    if (isComplete(received)) {
      release();
      socket.unshift(received);
      onComplete(received);
    }
  };
  socket.on("readable", check).on("close", release).on("end", close).on("error", close);
}
