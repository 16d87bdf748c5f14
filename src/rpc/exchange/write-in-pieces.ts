import type { Writable } from "node:stream";
import { maxTickBytes } from "./exchange.js";

/** Writes a long body in pieces, one per tick of the event loop, and ends the stream. */
export function writeInPieces(out: Writable, body: Buffer): void {
  let sentBytes = 0;
  const next = (): void => {
    if (out.destroyed) {
      return;
    }
    const piece = body.subarray(sentBytes, sentBytes + maxTickBytes);
    sentBytes += piece.length;
    if (sentBytes >= body.length) {
      out.end(piece);
    } else if (out.write(piece)) {
      setImmediate(next);
    } else {
      out.once("drain", () => setImmediate(next));
    }
  };
  next();
}

/** Writes one piece. Resolves when the next piece may be written, or if the stream has closed. */
export async function writePiece(out: Writable, piece: Uint8Array): Promise<void> {
  if (out.destroyed || out.write(piece)) {
    return;
  }
  await new Promise<void>((resolve) => {
    const go = (): void => {
      out.off("drain", go).off("close", go);
      resolve();
    };
    out.on("drain", go).on("close", go);
  });
}
