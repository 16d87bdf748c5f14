/**
 * Limits the requests that an HTTP/1.1 connection may send ahead of their responses. Node.js parses all that it has
 * read, up to 2,500 requests in 64 KiB, before any of them is handled. In pieces of one request each, parsing stops
 * while too many are unanswered, and the rest waits in the socket.
 */
import type { Socket } from "node:net";

/** Unanswered requests of a connection from which on no more are parsed. */
export const maxPipelined = 8;
const endOfHeaders = "\r\n\r\n";
/**
 * Length of a piece of a body. A body may contain as many ends of headers as it likes, and a piece takes microseconds.
 * What a piece contains after the end of its body may be requests: at most 56 of this length, beyond the limit.
 */
const bodyPieceBytes = 1_024;

export interface PieceParser {
  /** Parses on, after a response or after a pause. */
  resume(): void;
}

/**
 * Has a socket of a `node:http` server parsed in pieces, from the next read on.
 *
 * @param mayParse returns false while too many requests are unanswered.
 * @param expectedBody returns the announced length in bytes of a body that is not complete yet; Infinity if it has no
 * announced length, 0 if no body is expected.
 * @param onWaiting called with the change in bytes that have been read and wait to be parsed.
 */
export function parseInPieces(
  socket: Socket,
  mayParse: () => boolean,
  expectedBody: () => number,
  onWaiting: (bytes: number) => void,
): PieceParser {
  const parsers = socket.listeners("data") as ((chunk: Buffer) => void)[];
  let waiting: Buffer | undefined;
  /** True if this function has paused the socket. */
  let isHeld = false;
  /** True if Node.js has paused the socket and its parser, because the client does not read its responses. */
  let isPausedByNode = false;

  function parse(): void {
    if (isPausedByNode || waiting === undefined) {
      return;
    }
    if (isHeld) {
      isHeld = false;
      socket.resume();
    }
    while (waiting !== undefined && !isPausedByNode && mayParse() && !isEnded()) {
      const piece: Buffer = waiting.subarray(
        0,
        Math.max(lengthOfPiece(waiting), Math.min(expectedBody(), bodyPieceBytes)),
      );
      setWaiting(piece.length === waiting.length ? undefined : waiting.subarray(piece.length));
      parsers.forEach((listener) => listener.call(socket, piece));
      isPausedByNode = socket.isPaused();
    }
    if (waiting !== undefined && !isPausedByNode) {
      isHeld = true;
      socket.pause();
    }
  }

  /** Returns true if no request can get a response. The parser may serve another connection by then. */
  const isEnded = (): boolean => socket.destroyed || socket.writableEnded;

  function setWaiting(next: Buffer | undefined): void {
    onWaiting((next?.length ?? 0) - (waiting?.length ?? 0));
    waiting = next;
  }

  parsers.forEach((listener) => socket.off("data", listener));
  socket.on("data", (chunk: Buffer) => {
    setWaiting(waiting === undefined ? chunk : Buffer.concat([waiting, chunk]));
    parse();
  });
  socket.on("resume", () => {
    // The event is emitted later than the call, so the socket may be paused again.
    if (isPausedByNode && !socket.isPaused()) {
      isPausedByNode = false;
      parse();
    }
  });
  socket.once("close", () => setWaiting(undefined));
  return { resume: parse };
}

/** Returns true if bytes contain the headers of more than one request. */
export function containsSeveral(bytes: Buffer): boolean {
  return lengthOfPiece(bytes) < bytes.length;
}

/** Returns the length of the next piece: all bytes, unless they contain the headers of a second request. */
function lengthOfPiece(bytes: Buffer): number {
  const end = bytes.indexOf(endOfHeaders) + endOfHeaders.length;
  return end < endOfHeaders.length || bytes.indexOf(endOfHeaders, end) < 0 ? bytes.length : end;
}
