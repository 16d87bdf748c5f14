/**
 * Bytes that wait to be sent are bounded for a connection, for an address and in all, and who takes them too slowly is
 * cut. What readers do not read stays with the node, so this is what bounds its memory under them.
 */
import { Failure } from "../rpc/errors.js";
import { createCounts } from "./counts.js";

/** How many bytes may wait. */
export interface SendBounds {
  readonly totalBytes: number;
  readonly perAddressBytes: number;
  readonly perConnectionBytes: number;
  /** A reader has this long, and ... */
  readonly graceMs: number;
  /** ... a second more for each of so many bytes. */
  readonly leastBytesPerS: number;
}

const mib = 1024 * 1024;

/** The bounds of a node. */
export const defaultSending: SendBounds = {
  totalBytes: 64 * mib,
  perAddressBytes: 32 * mib,
  perConnectionBytes: 16 * mib,
  graceMs: 10_000,
  leastBytesPerS: 32 * 1024,
};

/** Who waits for bytes. */
export interface Reader {
  /** A key for the address: see `networkOf`. */
  readonly network: string;
  /** The connection, as an object of its own. */
  readonly connection: object;
  cut(): void;
}

export interface SendBudget {
  /**
   * Takes room.
   *
   * @throws Failure OVERLOADED where there is none.
   */
  take(reader: Reader, bytes: number): void;
  /** Gives room back. */
  give(reader: Reader, bytes: number): void;
  /** Bytes that wait. */
  readonly waitingBytes: number;
  stop(): void;
}

const lookEveryMs = 1_000;
const retryAfterS = 1;

export function createSendBudget(bounds: SendBounds): SendBudget {
  let waitingBytes = 0;
  const byAddress = createCounts();
  const byConnection = new WeakMap<object, number>();
  const waiting = new Map<Reader, { bytes: number; untilMs: number }>();

  const timer = setInterval(() => {
    const now = performance.now();
    for (const [reader, { untilMs }] of waiting) {
      if (now > untilMs) {
        reader.cut();
      }
    }
  }, lookEveryMs).unref();

  function add(reader: Reader, change: number): void {
    waitingBytes += change;
    byAddress.add(reader.network, change);
    byConnection.set(reader.connection, (byConnection.get(reader.connection) ?? 0) + change);
  }

  return {
    take(reader, bytes) {
      const hasRoom =
        waitingBytes + bytes <= bounds.totalBytes &&
        byAddress.get(reader.network) + bytes <= bounds.perAddressBytes &&
        (byConnection.get(reader.connection) ?? 0) + bytes <= bounds.perConnectionBytes;
      if (!hasRoom) {
        throw new Failure(
          "OVERLOADED",
          `Too many bytes wait to be read; read them, and try again in ${retryAfterS} s.`,
          retryAfterS,
        );
      }
      add(reader, bytes);
      const entry = waiting.get(reader);
      const untilMs = performance.now() + bounds.graceMs + (bytes / bounds.leastBytesPerS) * 1_000;
      if (entry === undefined) {
        waiting.set(reader, { bytes, untilMs });
      } else {
        entry.bytes += bytes;
        entry.untilMs = untilMs;
      }
    },
    give(reader, bytes) {
      add(reader, -bytes);
      const entry = waiting.get(reader)!;
      entry.bytes -= bytes;
      if (entry.bytes === 0) {
        waiting.delete(reader);
      }
    },
    get waitingBytes() {
      return waitingBytes;
    },
    stop: () => clearInterval(timer),
  };
}
