/** Reading of request bodies, complete or in chunks, from streams of HTTP/1.1 and HTTP/2. */
import { on } from "node:events";
import type { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { RpcError } from "../errors.js";
import { paceMessage } from "./pacing.js";

/** Event of a body whose rest will not arrive, with the RpcError, while the connection is still open. */
export const bodyRejected = Symbol("body rejected");

/** Limit on a buffered request body, in bytes: fits a transaction with a 1 MiB document in base64. */
export const maxBodyBytes = 2 * 1024 * 1024;

/** Time limit for a body, in milliseconds. */
const bodyWithinMs = 30_000;
/** Interval of the checks that a body still arrives, in milliseconds. */
const checkEveryMs = 5_000;
/** Bytes of a body that must arrive in each interval: 1 KiB per second. */
const minBytesPerCheck = 5 * 1024;

/**
 * Calls `onLate` once a body arrives too slowly, or takes too long.
 *
 * @param receivedBytes returns the number of bytes that have arrived.
 * @returns a function that stops the checks.
 */
function watchBody(receivedBytes: () => number, onLate: () => void): () => void {
  const endMs = performance.now() + bodyWithinMs;
  let checkedBytes = 0;
  const timer = setInterval(() => {
    const bytes = receivedBytes();
    if (bytes - checkedBytes < minBytesPerCheck || performance.now() >= endMs) {
      onLate();
    }
    checkedBytes = bytes;
  }, checkEveryMs);
  return () => clearInterval(timer);
}

/** Chunks below this size are copied together. Kept alone, each takes more memory than its bytes. */
const smallBytes = 4 * 1024;
const slabBytes = 64 * 1024;

/** Collects the chunks of a body. */
class Chunks {
  sizeBytes = 0;
  private readonly complete: Buffer[] = [];
  private count = 0;
  private slab = Buffer.alloc(0);
  private usedBytes = 0;

  add(chunk: Buffer): void {
    this.sizeBytes += chunk.length;
    this.count++;
    if (this.count === 1 || chunk.length >= smallBytes) {
      this.endSlab();
      this.complete.push(chunk);
      return;
    }
    if (chunk.length > this.slab.length - this.usedBytes) {
      this.endSlab();
      this.slab = Buffer.allocUnsafeSlow(slabBytes);
    }
    this.usedBytes += chunk.copy(this.slab, this.usedBytes);
  }

  /** Returns the collected bytes in order. */
  parts(): Buffer[] {
    this.endSlab();
    return this.complete;
  }

  private endSlab(): void {
    if (this.usedBytes > 0) {
      this.complete.push(this.slab.subarray(0, this.usedBytes));
      this.slab = this.slab.subarray(this.usedBytes);
      this.usedBytes = 0;
    }
  }
}

export interface EarlyCheck {
  readonly bytes: number;
  /** Throws an RpcError if the rest of the body should be rejected. */
  check(bytes: Buffer): void;
}

/**
 * Reads a stream to its end.
 *
 * @param onBytes called with the size of each chunk. May throw, to reject the body.
 * @throws RpcError as `Exchange.readBytes` does.
 */
export async function readBody(
  source: Readable,
  contentLength: number,
  maxBytes: number,
  onBytes: (bytes: number) => void,
  earlyCheck?: EarlyCheck,
): Promise<Buffer> {
  if (contentLength > maxBytes) {
    throw tooLarge(maxBytes);
  }
  const chunks = await new Promise<Buffer[]>((resolve, reject) => {
    const received = new Chunks();
    let isChecked = false;
    const fail = (failure: unknown): void => {
      stopWatching();
      // Discard the rest of the body.
      source.off("data", onData).resume();
      reject(failure as RpcError);
    };
    const onData = (chunk: Buffer): void => {
      try {
        if (received.sizeBytes + chunk.length > maxBytes) {
          throw tooLarge(maxBytes);
        }
        onBytes(chunk.length);
        received.add(chunk);
        if (earlyCheck !== undefined && !isChecked && received.sizeBytes >= earlyCheck.bytes) {
          isChecked = true;
          const parts = received.parts();
          earlyCheck.check(parts.length === 1 ? parts[0]! : Buffer.concat(parts));
        }
      } catch (error) {
        fail(error);
      }
    };
    const onEnd = (): void => {
      stopWatching();
      source.off("close", onClose).off(bodyRejected, fail);
      resolve(received.parts());
    };
    const onClose = (): void => fail(endedEarly());
    const stopWatching = watchBody(
      () => received.sizeBytes,
      () => fail(new RpcError("REQUEST_TIMEOUT", "The request did not arrive in time.")),
    );
    if (source.destroyed) {
      onClose();
    } else if (source.readableEnded) {
      // A stream that ended before reading started has no data left.
      onEnd();
    } else {
      source.on("data", onData).on("end", onEnd).on("close", onClose).on(bodyRejected, fail);
    }
  });
  return chunks.length > 1 ? await paceMessage(() => Buffer.concat(chunks)) : (chunks[0] ?? Buffer.alloc(0));
}

/** @param onBytes called with the size of each chunk. May throw, to stop. */
export async function discardBody(source: Readable, onBytes: (bytes: number) => void): Promise<void> {
  if (source.destroyed || source.readableEnded) {
    return;
  }
  let sizeBytes = 0;
  const late = new AbortController();
  const stopWatching = watchBody(
    () => sizeBytes,
    () => late.abort(),
  );
  source.on("data", (chunk: Buffer) => {
    sizeBytes += chunk.length;
    try {
      onBytes(chunk.length);
    } catch {
      late.abort();
    }
  });
  source.once(bodyRejected, () => late.abort());
  await finished(source, { writable: false, signal: late.signal }).catch(() => undefined);
  stopWatching();
}

/**
 * Yields the chunks of a body. Uses events, because async iteration would destroy the stream at its end, and with it
 * the response.
 */
export async function* iterateChunks(source: Readable): AsyncGenerator<Uint8Array> {
  const hasEnded = (): boolean => source.readableEnded;
  if (hasEnded()) {
    return;
  }
  if (source.destroyed) {
    throw endedEarly();
  }
  let failure = endedEarly();
  source.once(bodyRejected, (error: RpcError) => (failure = error));
  const close = ["end", "close", bodyRejected] as string[];
  const chunks = on(source, "data", { close, highWaterMark: 16, lowWaterMark: 8 });
  for await (const [chunk] of chunks as AsyncIterable<[Uint8Array]>) {
    yield chunk;
  }
  if (!hasEnded()) {
    throw failure;
  }
}

function tooLarge(maxBytes: number): RpcError {
  return new RpcError("PAYLOAD_TOO_LARGE", `The request body must not be larger than ${maxBytes} bytes.`);
}

function endedEarly(): RpcError {
  return new RpcError("INVALID_REQUEST", "The request body ended early.");
}
