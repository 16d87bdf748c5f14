/**
 * What requests and answers hold in memory is bounded for a connection, for an address and in all; and who takes an
 * answer too slowly is cut. What readers do not read stays with the node, so this is what bounds its memory under them.
 */
import { RpcError } from "../rpc/errors.js";
import type { AddressUsage } from "./address-usage.js";

/** How many bytes may be held. */
export interface ByteBounds {
  readonly totalBytes: number;
  /** Room beyond that for small requests and answers: large ones do not shut out probes. */
  readonly reserveBytes: number;
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
  totalBytes: 56 * mib,
  reserveBytes: 8 * mib,
  perAddressBytes: 32 * mib,
  perConnectionBytes: 16 * mib,
  graceMs: 10_000,
  leastBytesPerS: 32 * 1024,
};

/** Whose bytes are held. */
export interface Holder {
  readonly account: AddressUsage;
  /** What the connection holds. */
  readonly connection: { heldBytes: number };
  /** Its neighbours among those who are reading, in the order in which they began. */
  next: Holder | undefined;
  previous: Holder | undefined;
  /** When it has to have read, on the clock of `performance.now()`; undefined while it does not read. */
  readByMs: number | undefined;
  /** Ends it at once: it was too slow. */
  cut(): void;
}

export interface ByteBudget {
  /**
   * Looks whether whoever holds bytes already may ask for more: not while half of his room is taken. It is looked at
   * before anything is done for a request, since it is the making of answers that nobody reads which costs.
   *
   * @throws Failure OVERLOADED
   */
  check(account: AddressUsage, connection: Holder["connection"]): void;
  /**
   * Takes room.
   *
   * @throws Failure OVERLOADED where there is none.
   */
  take(holder: Holder, bytes: number): void;
  /** Whether it is the holder's own share that is full, and not the node. */
  isShareFull(holder: Holder, bytes: number): boolean;
  /** Gives room back. */
  give(holder: Holder, bytes: number): void;
  /** From now on the holder has to read so many bytes in time. */
  expect(holder: Holder, bytes: number): void;
  /** It has. */
  forget(holder: Holder): void;
  /** Bytes that are held. */
  readonly heldBytes: number;
  /** Cuts who is too late. */
  sweep(): void;
}

/** What is no longer than this is small. */
const smallBytes = 8 * 1024;

const retryAfterS = 1;

const bytesOf = (account: AddressUsage): number => account.bytes + account.elsewhere.bytes;

export function createByteBudget(bounds: ByteBounds): ByteBudget {
  let heldBytes = 0;
  // A list of neighbours: every answer goes through it, and a Map would cost more than all else here.
  let first: Holder | undefined;

  function add({ account, connection }: Holder, change: number): void {
    heldBytes += change;
    account.bytes += change;
    connection.heldBytes += change;
  }

  function forget(holder: Holder): void {
    const { next, previous } = holder;
    if (holder.readByMs === undefined) {
      return;
    }
    holder.readByMs = holder.next = holder.previous = undefined;
    if (next !== undefined) {
      next.previous = previous;
    }
    if (previous === undefined) {
      first = next;
    } else {
      previous.next = next;
    }
  }

  function isShareFull({ account, connection }: Holder, bytes: number): boolean {
    return (
      bytesOf(account) + bytes > bounds.perAddressBytes || connection.heldBytes + bytes > bounds.perConnectionBytes
    );
  }

  return {
    isShareFull,
    check(account, connection) {
      if (bytesOf(account) * 2 > bounds.perAddressBytes || connection.heldBytes * 2 > bounds.perConnectionBytes) {
        const message = `Read the answers that are under way, then ask again, in ${retryAfterS} s.`;
        throw new RpcError("OVERLOADED", message, retryAfterS);
      }
    },
    take(holder, bytes) {
      const reserveBytes = bytes <= smallBytes ? bounds.reserveBytes : 0;
      if (heldBytes + bytes > bounds.totalBytes + reserveBytes || isShareFull(holder, bytes)) {
        const message = `There is no room for the bytes of this exchange; read what is under way, and try again in ${retryAfterS} s.`;
        throw new RpcError("OVERLOADED", message, retryAfterS);
      }
      add(holder, bytes);
    },
    give: (holder, bytes) => add(holder, -bytes),
    expect(holder, bytes) {
      if (holder.readByMs === undefined) {
        holder.next = first;
        if (first !== undefined) {
          first.previous = holder;
        }
        first = holder;
      }
      holder.readByMs = performance.now() + bounds.graceMs + (bytes / bounds.leastBytesPerS) * 1_000;
    },
    forget,
    get heldBytes() {
      return heldBytes;
    },
    sweep() {
      const now = performance.now();
      for (let holder = first; holder !== undefined;) {
        const { next, readByMs } = holder;
        if (readByMs! < now) {
          forget(holder);
          holder.cut();
        }
        holder = next;
      }
    },
  };
}
