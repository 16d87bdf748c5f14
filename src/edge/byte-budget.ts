/**
 * Limits the bytes that requests and responses hold in memory, per connection, per address and in total. Aborts
 * requests of clients that read their response too slowly, because unread responses stay in the node's memory.
 */
import { RpcError } from "../rpc/errors.js";
import type { AddressUsage } from "./address-usage.js";

/** Limits on reserved bytes. */
export interface ByteBounds {
  readonly totalBytes: number;
  /** Extra capacity for small requests and responses, so that large ones do not block probes. */
  readonly reserveBytes: number;
  readonly perAddressBytes: number;
  readonly perConnectionBytes: number;
  /** Time in milliseconds that a client has to read a response, plus `leastBytesPerS`. */
  readonly graceMs: number;
  /** Minimum speed of a client in bytes per second; larger responses get more time. */
  readonly leastBytesPerS: number;
}

const mib = 1024 * 1024;

export const defaultBytes: ByteBounds = {
  totalBytes: 56 * mib,
  reserveBytes: 8 * mib,
  perAddressBytes: 32 * mib,
  perConnectionBytes: 16 * mib,
  graceMs: 10_000,
  leastBytesPerS: 32 * 1024,
};

/** Request or stream that reserves bytes. */
export interface Holder {
  readonly account: AddressUsage;
  /** Connection, with the bytes reserved by its requests. */
  readonly connection: { heldBytes: number };
  /** Next and previous holder in the list of holders with a deadline. */
  next: Holder | undefined;
  previous: Holder | undefined;
  /** Deadline to read the response, on the clock of `performance.now()`; undefined if nothing is to be read. */
  readByMs: number | undefined;
  /** Aborts the request immediately, because the client is too slow. */
  cut(): void;
}

export interface ByteBudget {
  /**
   * Checks that the caller may send another request: not if more than half of its capacity is reserved. The check comes
   * before any work, because unread responses are expensive to build.
   *
   * @throws RpcError OVERLOADED
   */
  check(account: AddressUsage, connection: Holder["connection"]): void;
  /**
   * Reserves bytes.
   *
   * @throws RpcError OVERLOADED if the connection, the address or the node has no capacity.
   */
  take(holder: Holder, bytes: number): void;
  /** Returns true if these bytes exceed the quota of the address or connection, and not only the limit of the node. */
  isShareFull(holder: Holder, bytes: number): boolean;
  /** Releases bytes. */
  give(holder: Holder, bytes: number): void;
  /** Sets the deadline of the holder to read this many bytes. */
  expect(holder: Holder, bytes: number): void;
  /** Removes the deadline of the holder, after it has read everything. */
  forget(holder: Holder): void;
  /** Total of reserved bytes. */
  readonly heldBytes: number;
  /** Aborts requests past their deadline. */
  sweep(): void;
}

/** Size in bytes up to which a reservation may use the extra capacity. */
const smallBytes = 8 * 1024;

const retryAfterS = 1;

const bytesOf = (account: AddressUsage): number => account.bytes + account.elsewhere.bytes;

export function createByteBudget(bounds: ByteBounds): ByteBudget {
  let heldBytes = 0;
  // A linked list, because every response is added and removed. A Map would cost more than everything else here.
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
        const message = `Your pending responses use too much memory; read them, then try again in ${retryAfterS} s.`;
        throw new RpcError("OVERLOADED", message, retryAfterS);
      }
    },
    take(holder, bytes) {
      const reserveBytes = bytes <= smallBytes ? bounds.reserveBytes : 0;
      if (heldBytes + bytes > bounds.totalBytes + reserveBytes || isShareFull(holder, bytes)) {
        const message = `The memory limit is reached; read your pending responses, then try again in ${retryAfterS} s.`;
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
