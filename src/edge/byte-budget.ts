/**
 * Limits the bytes that requests and responses hold in memory, per connection, per address and in total. Aborts
 * requests of clients that read their response too slowly, because unread responses stay in the node's memory.
 */
import { RpcError } from "../rpc/errors.js";
import type { AddressUsage } from "./address-usage.js";

/** Limits on reserved bytes. */
export interface ByteLimits {
  readonly totalBytes: number;
  /** Extra capacity for small requests and responses, so that large ones do not block probes. */
  readonly extraBytes: number;
  readonly perAddressBytes: number;
  readonly perConnectionBytes: number;
  /** Time in milliseconds that a client has to read a response, plus `minBytesPerS`. */
  readonly graceMs: number;
  /** Minimum speed of a client in bytes per second; larger responses get more time. */
  readonly minBytesPerS: number;
}

const mib = 1024 * 1024;

export const defaultBytes: ByteLimits = {
  totalBytes: 56 * mib,
  extraBytes: 8 * mib,
  perAddressBytes: 32 * mib,
  perConnectionBytes: 16 * mib,
  graceMs: 10_000,
  minBytesPerS: 32 * 1024,
};

/** Request or stream that reserves bytes. */
export interface Holder {
  readonly usage: AddressUsage;
  /** Connection, with the bytes reserved by its requests. */
  readonly connection: { reservedBytes: number };
  /** Next and previous holder in the list of holders with a deadline. */
  next: Holder | undefined;
  previous: Holder | undefined;
  /** Deadline to read the response, on the clock of `performance.now()`; undefined if nothing is to be read. */
  readByMs: number | undefined;
  /** Aborts the request immediately, because the client is too slow. */
  abort(): void;
}

export interface ByteBudget {
  /**
   * Checks that the caller may send another request: not if more than half of its capacity is reserved. The check comes
   * before any work, because unread responses are expensive to build.
   *
   * @throws RpcError OVERLOADED
   */
  check(usage: AddressUsage, connection: Holder["connection"]): void;
  /**
   * Reserves bytes.
   *
   * @throws RpcError OVERLOADED if the connection, the address or the node has no capacity.
   */
  reserve(holder: Holder, bytes: number): void;
  /** Returns true if these bytes exceed the quota of the address or connection, and not only the limit of the node. */
  exceedsQuota(holder: Holder, bytes: number): boolean;
  /** Releases bytes. */
  release(holder: Holder, bytes: number): void;
  /** Sets the deadline of the holder to read this many bytes. */
  setDeadline(holder: Holder, bytes: number): void;
  /** Removes the deadline of the holder, after it has read everything. */
  clearDeadline(holder: Holder): void;
  /** Total of reserved bytes. */
  readonly reservedBytes: number;
  /** Aborts requests past their deadline. */
  sweep(): void;
}

/** Size in bytes up to which a reservation may use the extra capacity. */
const smallBytes = 8 * 1024;

const retryAfterS = 1;

const bytesOf = (usage: AddressUsage): number => usage.bytes + usage.elsewhere.bytes;

export function createByteBudget(limits: ByteLimits): ByteBudget {
  let reservedBytes = 0;
  // A linked list, because every response is added and removed. A Map would cost more than everything else here.
  let first: Holder | undefined;

  function add({ usage, connection }: Holder, change: number): void {
    reservedBytes += change;
    usage.bytes += change;
    connection.reservedBytes += change;
  }

  function clearDeadline(holder: Holder): void {
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

  function exceedsQuota({ usage, connection }: Holder, bytes: number): boolean {
    return (
      bytesOf(usage) + bytes > limits.perAddressBytes || connection.reservedBytes + bytes > limits.perConnectionBytes
    );
  }

  return {
    exceedsQuota,
    check(usage, connection) {
      if (bytesOf(usage) * 2 > limits.perAddressBytes || connection.reservedBytes * 2 > limits.perConnectionBytes) {
        const message = `Your pending responses use too much memory; read them, then try again in ${retryAfterS} s.`;
        throw new RpcError("OVERLOADED", message, retryAfterS);
      }
    },
    reserve(holder, bytes) {
      const extraBytes = bytes <= smallBytes ? limits.extraBytes : 0;
      if (reservedBytes + bytes > limits.totalBytes + extraBytes || exceedsQuota(holder, bytes)) {
        const message = `The memory limit is reached; read your pending responses, then try again in ${retryAfterS} s.`;
        throw new RpcError("OVERLOADED", message, retryAfterS);
      }
      add(holder, bytes);
    },
    release: (holder, bytes) => add(holder, -bytes),
    setDeadline(holder, bytes) {
      if (holder.readByMs === undefined) {
        holder.next = first;
        if (first !== undefined) {
          first.previous = holder;
        }
        first = holder;
      }
      holder.readByMs = performance.now() + limits.graceMs + (bytes / limits.minBytesPerS) * 1_000;
    },
    clearDeadline,
    get reservedBytes() {
      return reservedBytes;
    },
    sweep() {
      const now = performance.now();
      for (let holder = first; holder !== undefined;) {
        const { next, readByMs } = holder;
        if (readByMs! < now) {
          clearDeadline(holder);
          holder.abort();
        }
        holder = next;
      }
    },
  };
}
