/**
 * Pacing of expensive work: large bodies are parsed, created and written in pieces of the event loop's ticks. Other
 * requests then wait for one of them, not for all.
 */
import type { Writable } from "node:stream";
import { setImmediate as laterTick } from "node:timers/promises";

/** Limit on the bytes written in one tick. Longer responses are split, so that other requests are served in between. */
export const maxTickBytes = 64 * 1024;

/** Bytes that a small message counts as, since most of its cost is fixed. */
const minMessageBytes = 1024;

/** Bytes of the messages and large responses that were created in this tick. */
let createdBytes = 0;
let lastTurn: Promise<void> = Promise.resolve();

function countBytes(bytes: number): void {
  if (createdBytes === 0) {
    setImmediate(() => (createdBytes = 0));
  }
  createdBytes += bytes;
}

/** Waits for a tick that has created less than its limit. Each waiter decides after the code behind the one before. */
function nextTurn(): Promise<void> {
  return (lastTurn = lastTurn.then(() => (createdBytes < maxTickBytes ? undefined : laterTick())));
}

/** Waits for a tick of the event loop that no other waiter shares. */
export async function nextTick(): Promise<void> {
  await nextTurn();
  countBytes(maxTickBytes);
}

/** Creates a message. Small messages share a tick, up to its limit. */
export async function paceMessage(create: () => Buffer): Promise<Buffer> {
  await nextTurn();
  const message = create();
  countBytes(Math.max(message.length, minMessageBytes));
  return message;
}

interface Response {
  readonly body?: string | Buffer | undefined;
  readonly isShared?: boolean | undefined;
}

/** Creates a response now, or in a later tick if this tick has created enough bytes. */
export function paceResponse<R extends Response>(create: () => R): R | Promise<R> {
  if (createdBytes > maxTickBytes) {
    return nextTurn().then(() => paceResponse(create));
  }
  const response = create();
  const bytes = response.body?.length ?? 0;
  if (bytes > maxTickBytes && response.isShared !== true) {
    countBytes(bytes);
  }
  return response;
}

/** Writes a body and ends the stream. A long body is written in pieces, one per tick. */
export function writeBody(out: Writable, body: string | Buffer): void {
  if (body.length <= maxTickBytes) {
    // ASCII is the same in both encodings, but only Latin-1 is copied as it is.
    out.end(body, Buffer.byteLength(body) === body.length ? "latin1" : "utf8");
    return;
  }
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  let sentBytes = 0;
  const next = (): void => {
    if (out.destroyed) {
      return;
    }
    const piece = bytes.subarray(sentBytes, sentBytes + maxTickBytes);
    sentBytes += piece.length;
    if (sentBytes >= bytes.length) {
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
