import type { Writable } from "node:stream";
import { turnBytes } from "./exchange.js";

/** Writes a long body piece by piece, each in a turn of the event loop of its own, and ends the stream. */
export function writeInTurns(out: Writable, body: Buffer): void {
  let sentBytes = 0;
  const next = (): void => {
    if (out.destroyed) {
      return;
    }
    const piece = body.subarray(sentBytes, sentBytes + turnBytes);
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

/** Writes one piece; resolves when there is room for the next, or nobody to read it. */
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
