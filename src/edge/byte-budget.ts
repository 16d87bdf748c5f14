/**
 * What requests and answers hold in memory is bounded for a connection, for an address and in all; and who takes an
 * answer too slowly is cut. What readers do not read stays with the node, so this is what bounds its memory under them.
 */
import { Failure } from "../rpc/errors.js";
import { createCounts } from "./counts.js";

/** How many bytes may be held. */
export interface ByteBounds {
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
export const defaultBytes: ByteBounds = {
  totalBytes: 64 * mib,
  perAddressBytes: 32 * mib,
  perConnectionBytes: 16 * mib,
  graceMs: 10_000,
  leastBytesPerS: 32 * 1024,
};

/** Whose bytes are held. */
export interface Holder {
  /** A key for the address: see `networkOf`. */
  readonly network: string;
  /** The connection, as an object of its own. */
  readonly connection: object;
  /** Ends it at once: it was too slow. */
  cut(): void;
}

export interface ByteBudget {
  /**
   * Takes room.
   *
   * @throws Failure OVERLOADED where there is none.
   */
  take(holder: Holder, bytes: number): void;
  /** Gives room back. */
  give(holder: Holder, bytes: number): void;
  /** From now on the holder has to read so many bytes in time. */
  expect(holder: Holder, bytes: number): void;
  /** It has. */
  forget(holder: Holder): void;
  /** Bytes that are held. */
  readonly heldBytes: number;
  stop(): void;
}

const lookEveryMs = 1_000;
const retryAfterS = 1;

export function createByteBudget(bounds: ByteBounds): ByteBudget {
  let heldBytes = 0;
  const byAddress = createCounts();
  const byConnection = new WeakMap<object, number>();
  /** When each reader has to be done, on the clock of `performance.now()`. */
  const reading = new Map<Holder, number>();

  const timer = setInterval(() => {
    const now = performance.now();
    for (const [holder, untilMs] of reading) {
      if (now > untilMs) {
        reading.delete(holder);
        holder.cut();
      }
    }
  }, lookEveryMs).unref();

  function add({ network, connection }: Holder, change: number): void {
    heldBytes += change;
    byAddress.add(network, change);
    byConnection.set(connection, (byConnection.get(connection) ?? 0) + change);
  }

  return {
    take(holder, bytes) {
      const hasRoom =
        heldBytes + bytes <= bounds.totalBytes &&
        byAddress.get(holder.network) + bytes <= bounds.perAddressBytes &&
        (byConnection.get(holder.connection) ?? 0) + bytes <= bounds.perConnectionBytes;
      if (!hasRoom) {
        const message = `There is no room for the bytes of this exchange; read what is under way, and try again in ${retryAfterS} s.`;
        throw new Failure("OVERLOADED", message, retryAfterS);
      }
      add(holder, bytes);
    },
    give: (holder, bytes) => add(holder, -bytes),
    expect: (holder, bytes) =>
      void reading.set(holder, performance.now() + bounds.graceMs + (bytes / bounds.leastBytesPerS) * 1_000),
    forget: (holder) => void reading.delete(holder),
    get heldBytes() {
      return heldBytes;
    },
    stop: () => clearInterval(timer),
  };
}
