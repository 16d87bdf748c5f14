/**
 * Destination of log lines: a file descriptor that is written synchronously, so that a line is out when the call
 * returns. Logging never stops or blocks the node. Up to 1 MiB is buffered for a slow reader. Lines beyond that, and
 * lines that fail, are dropped and counted. After an error the next line is tried again, because a full disk may have
 * space by then.
 */
import { writeSync } from "node:fs";

export type LogDestination = ReturnType<typeof openLogDestination>;

/** Limit in bytes on the buffer for a slow reader. */
const maxBufferBytes = 1_048_576;
const retryAfterMs = 100;

export function openLogDestination(fd: number, write: (fd: number, bytes: Uint8Array) => number = writeSync) {
  const buffered: Uint8Array[] = [];
  let bufferedBytes = 0;
  let lost = 0;
  let timer: NodeJS.Timeout | undefined;

  /** Writes bytes. Returns the rest if the reader is slow; undefined if the bytes are written or dropped. */
  function put(bytes: Uint8Array): Uint8Array | undefined {
    let rest = bytes;
    try {
      while (rest.length > 0) {
        rest = rest.subarray(write(fd, rest));
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EAGAIN") {
        return rest;
      }
      lost++;
    }
    return undefined;
  }

  function flushBuffered(): void {
    for (let first = buffered[0]; first !== undefined; first = buffered[0]) {
      const rest = put(first);
      bufferedBytes -= first.length - (rest?.length ?? 0);
      if (rest !== undefined) {
        buffered[0] = rest;
        return;
      }
      buffered.shift();
    }
    clearInterval(timer);
    timer = undefined;
  }

  function buffer(bytes: Uint8Array, isStarted: boolean): void {
    // Complete a line that is partly written, so that lines stay separate.
    if (bufferedBytes + bytes.length > maxBufferBytes && !isStarted) {
      lost++;
      return;
    }
    buffered.push(bytes);
    bufferedBytes += bytes.length;
    timer ??= setInterval(flushBuffered, retryAfterMs).unref();
  }

  process.once("exit", flushBuffered);
  return {
    /** Writes a line; never throws. */
    write(line: string) {
      const bytes = Buffer.from(line);
      if (buffered.length > 0) {
        buffer(bytes, false);
        return;
      }
      const rest = put(bytes);
      if (rest !== undefined) {
        buffer(rest, rest.length < bytes.length);
      }
    },
    lost: () => lost,
  };
}
