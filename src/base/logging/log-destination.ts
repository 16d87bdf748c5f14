/**
 * Where log lines go: a file descriptor that they are written to at once, so that a line is out when the call returns. A
 * log that cannot be written ends nothing and holds nobody up: a reader that is slow has so much kept for it, and what is
 * beyond that, or fails, is lost and counted. The next line is tried again: a full disk may have room by then.
 */
import { writeSync } from "node:fs";

export interface LogDestination {
  /** Writes a line; never throws. */
  write(line: string): void;
  /** How many lines were lost. */
  lost(): number;
}

/** What is kept for a reader that is slow. */
const maxKeptBytes = 1_048_576;
const retryAfterMs = 100;

/** Writes to a descriptor, which stays open. */
export function openLogDestination(
  fd: number,
  write: (fd: number, bytes: Uint8Array) => number = writeSync,
): LogDestination {
  const kept: Uint8Array[] = [];
  let keptBytes = 0;
  let lost = 0;
  let timer: NodeJS.Timeout | undefined;

  /** Gives what is left of a line because its reader is slow; undefined when there is nothing more to do for it. */
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

  function putKept(): void {
    for (let first = kept[0]; first !== undefined; first = kept[0]) {
      const rest = put(first);
      keptBytes -= first.length - (rest?.length ?? 0);
      if (rest !== undefined) {
        kept[0] = rest;
        return;
      }
      kept.shift();
    }
    clearInterval(timer);
    timer = undefined;
  }

  function keep(bytes: Uint8Array, isBegun: boolean): void {
    // What was begun is ended, so that lines stay lines.
    if (keptBytes + bytes.length > maxKeptBytes && !isBegun) {
      lost++;
      return;
    }
    kept.push(bytes);
    keptBytes += bytes.length;
    timer ??= setInterval(putKept, retryAfterMs).unref();
  }

  process.once("exit", putKept);
  return {
    write(line) {
      const bytes = Buffer.from(line);
      if (kept.length > 0) {
        keep(bytes, false);
        return;
      }
      const rest = put(bytes);
      if (rest !== undefined) {
        keep(rest, rest.length < bytes.length);
      }
    },
    lost: () => lost,
  };
}
