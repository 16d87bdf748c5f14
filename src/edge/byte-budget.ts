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
export interface ReservingRequest {
  readonly usage: AddressUsage;
  /** Connection, with the bytes reserved by its requests. */
  readonly connection: { reservedBytes: number };
  /** Next and previous request in the list of requests with a deadline. */
  next: ReservingRequest | undefined;
  previous: ReservingRequest | undefined;
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
  check(usage: AddressUsage, connection: ReservingRequest["connection"]): void;
  /**
   * Reserves bytes.
   *
   * @throws RpcError OVERLOADED if the connection, the address or the node has no capacity.
   */
  reserve(request: ReservingRequest, bytes: number): void;
  /** Returns true if these bytes exceed the quota of the address or connection, and not only the limit of the node. */
  exceedsQuota(request: ReservingRequest, bytes: number): boolean;
  /** Releases bytes. */
  release(request: ReservingRequest, bytes: number): void;
  /** Sets the deadline of the request to read this many bytes. */
  setDeadline(request: ReservingRequest, bytes: number): void;
  /** Removes the deadline of the request, after it has read everything. */
  clearDeadline(request: ReservingRequest): void;
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
  let first: ReservingRequest | undefined;

  function add({ usage, connection }: ReservingRequest, change: number): void {
    reservedBytes += change;
    usage.bytes += change;
    connection.reservedBytes += change;
  }

  function clearDeadline(request: ReservingRequest): void {
    const { next, previous } = request;
    if (request.readByMs === undefined) {
      return;
    }
    request.readByMs = request.next = request.previous = undefined;
    if (next !== undefined) {
      next.previous = previous;
    }
    if (previous === undefined) {
      first = next;
    } else {
      previous.next = next;
    }
  }

  function exceedsQuota({ usage, connection }: ReservingRequest, bytes: number): boolean {
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
    reserve(request, bytes) {
      const extraBytes = bytes <= smallBytes ? limits.extraBytes : 0;
      if (reservedBytes + bytes > limits.totalBytes + extraBytes || exceedsQuota(request, bytes)) {
        const message = `The memory limit is reached; read your pending responses, then try again in ${retryAfterS} s.`;
        throw new RpcError("OVERLOADED", message, retryAfterS);
      }
      add(request, bytes);
    },
    release: (request, bytes) => add(request, -bytes),
    setDeadline(request, bytes) {
      if (request.readByMs === undefined) {
        request.next = first;
        if (first !== undefined) {
          first.previous = request;
        }
        first = request;
      }
      request.readByMs = performance.now() + limits.graceMs + (bytes / limits.minBytesPerS) * 1_000;
    },
    clearDeadline,
    get reservedBytes() {
      return reservedBytes;
    },
    sweep() {
      const now = performance.now();
      for (let request = first; request !== undefined;) {
        const { next, readByMs } = request;
        if (readByMs! < now) {
          clearDeadline(request);
          request.abort();
        }
        request = next;
      }
    },
  };
}
