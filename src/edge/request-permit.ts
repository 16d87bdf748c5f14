/**
 * Permit of a request or stream: its slot and its reserved bytes, released when it ends in any way. The bytes that
 * requests and responses hold in memory are limited per connection, per address and in total. Requests of clients that
 * read their response too slowly are aborted, because unread responses stay in the node's memory.
 */
import { type Outcome, RpcError } from "../rpc/errors.js";
import type { Arrival, Permit } from "../rpc/gate.js";
import type { Caller, ServedMethod } from "../rpc/service.js";
import type { AddressUsage, Slot } from "./address-usage.js";
import type { TrackedConnection } from "./connection-limit.js";
import type { AdmittedRequest } from "./request-reporter.js";

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

/** Size in bytes up to which a reservation may use the extra capacity. */
const smallBytes = 8 * 1024;

const retryAfterS = 1;

const bytesOf = (usage: AddressUsage): number => usage.bytes + usage.elsewhere.bytes;

export class ByteBudget {
  reservedBytes = 0;
  // A linked list, because every response is added and removed. A Set takes 0.8 µs longer for each.
  private first: RequestPermit | undefined;

  constructor(private readonly limits: ByteLimits) {}

  /**
   * Checks that the caller may send another request: not if more than half of its capacity is reserved. The check comes
   * before any work, because unread responses are expensive to build.
   *
   * @throws RpcError RATE_LIMITED
   */
  check(usage: AddressUsage, connection: TrackedConnection): void {
    const { perAddressBytes, perConnectionBytes } = this.limits;
    if (bytesOf(usage) * 2 > perAddressBytes || connection.reservedBytes * 2 > perConnectionBytes) {
      const message = `Your pending responses use too much memory; read them, then try again in ${retryAfterS} s.`;
      throw new RpcError("RATE_LIMITED", message, retryAfterS);
    }
  }

  /**
   * Reserves bytes. Penalizes the connection if they exceed the quota of its address or its own.
   *
   * @throws RpcError RATE_LIMITED if the connection or the address has no capacity; OVERLOADED if the node has none.
   */
  reserve({ usage, connection }: RequestPermit, bytes: number): void {
    const { totalBytes, extraBytes, perAddressBytes, perConnectionBytes } = this.limits;
    const exceedsQuota =
      bytesOf(usage) + bytes > perAddressBytes || connection.reservedBytes + bytes > perConnectionBytes;
    if (exceedsQuota) {
      connection.penalize();
    }
    if (exceedsQuota || this.reservedBytes + bytes > totalBytes + (bytes <= smallBytes ? extraBytes : 0)) {
      const message = `The memory limit is reached; read your pending responses, then try again in ${retryAfterS} s.`;
      throw new RpcError(exceedsQuota ? "RATE_LIMITED" : "OVERLOADED", message, retryAfterS);
    }
    this.reservedBytes += bytes;
    usage.bytes += bytes;
    connection.reservedBytes += bytes;
  }

  release({ usage, connection }: RequestPermit, bytes: number): void {
    this.reservedBytes -= bytes;
    usage.bytes -= bytes;
    connection.reservedBytes -= bytes;
  }

  /** Sets the deadline of the request to read this many bytes. */
  setDeadline(request: RequestPermit, bytes: number): void {
    if (request.readByMs === undefined) {
      request.next = this.first;
      if (this.first !== undefined) {
        this.first.previous = request;
      }
      this.first = request;
    }
    request.readByMs = performance.now() + this.limits.graceMs + (bytes / this.limits.minBytesPerS) * 1_000;
  }

  /** Removes the deadline of the request, after it has read everything. */
  clearDeadline(request: RequestPermit): void {
    const { next, previous } = request;
    if (request.readByMs === undefined) {
      return;
    }
    request.readByMs = request.next = request.previous = undefined;
    if (next !== undefined) {
      next.previous = previous;
    }
    if (previous === undefined) {
      this.first = next;
    } else {
      previous.next = next;
    }
  }

  sweep(): void {
    const now = performance.now();
    for (let request = this.first; request !== undefined;) {
      const { next, readByMs } = request;
      if (readByMs! < now) {
        this.clearDeadline(request);
        request.abort();
      }
      request = next;
    }
  }
}

export interface PermitDeps {
  readonly bytes: ByteBudget;
  charge(address: string, chargedBytes: number): void;
  /** Returns the identity that the headers of a request prove. Throws RpcError INVALID_SIGNATURE. */
  identify(arrival: Arrival): string | undefined;
  /** Occupies a slot. Throws RpcError RATE_LIMITED, OVERLOADED or TOO_MANY_STREAMS. */
  acquire(permit: RequestPermit): void;
  release(permit: RequestPermit): void;
  onEnd(permit: RequestPermit, code: Outcome, endMs: number): void;
}

export class RequestPermit implements Permit, Slot {
  private code: Outcome = "CANCELLED";
  private finishedMs: number | undefined;
  private reservedBytes = 0;
  private unreadBytes = 0;
  private requestBytes = 0;
  private isReleased = false;
  private hasSlot = false;
  newer: Slot | undefined;
  older: Slot | undefined;
  /** Next and previous request in the list of requests with a deadline. */
  next: RequestPermit | undefined;
  previous: RequestPermit | undefined;
  /** Deadline to read the response, on the clock of `performance.now()`; undefined if nothing is to be read. */
  readByMs: number | undefined;
  ready: Promise<void> | undefined;
  readonly connection: TrackedConnection;

  constructor(
    readonly admitted: AdmittedRequest,
    public headers: readonly string[],
    readonly isStream: boolean,
    readonly usage: AddressUsage,
    private readonly deps: PermitDeps,
  ) {
    this.connection = admitted.arrival.connection as TrackedConnection;
  }

  get method(): ServedMethod | undefined {
    return this.admitted.method;
  }

  set method(method: ServedMethod | undefined) {
    this.admitted.method = method;
  }

  callerOf(method: ServedMethod | undefined): Caller {
    const { address, arrival } = this.admitted;
    const proven = this.connection.provenIdentity;
    const identity = proven ?? (method?.identifiesCaller === true ? this.deps.identify(arrival) : undefined);
    return { address, identity };
  }

  recordOutcome(failure?: RpcError): void {
    if (this.finishedMs === undefined) {
      this.finishedMs = performance.now();
      this.code = failure?.reason ?? "OK";
    }
  }

  occupySlot(): void {
    if (!this.hasSlot && !this.isReleased) {
      this.deps.acquire(this);
      this.hasSlot = true;
      this.connection.acquire();
    }
  }

  giveWay(): void {
    this.admitted.arrival.abort();
    this.release();
  }

  reserveRequestBytes(bytes: number): void {
    if (!this.isReleased) {
      this.reserve(bytes);
      this.requestBytes += bytes;
    }
  }

  reserveResponseBytes(bytes: number, chargedBytes = bytes): void {
    if (this.isReleased || bytes === 0) {
      return;
    }
    this.reserve(bytes);
    this.unreadBytes += bytes;
    this.deps.bytes.setDeadline(this, Math.max(this.unreadBytes, chargedBytes));
    this.deps.charge(this.admitted.address, chargedBytes);
  }

  private reserve(bytes: number): void {
    this.deps.bytes.reserve(this, bytes);
    this.reservedBytes += bytes;
  }

  releaseResponseBytes(bytes: number): void {
    if (this.isReleased) {
      return;
    }
    this.reservedBytes -= bytes;
    this.unreadBytes -= bytes;
    this.deps.bytes.release(this, bytes);
    if (this.unreadBytes === 0) {
      this.deps.bytes.clearDeadline(this);
    }
  }

  /** Aborts the request immediately, because the client is too slow. */
  abort(): void {
    this.connection.penalize();
    this.admitted.arrival.abort();
  }

  release(): void {
    if (this.isReleased) {
      return;
    }
    this.isReleased = true;
    this.deps.charge(this.admitted.address, this.requestBytes);
    this.deps.bytes.release(this, this.reservedBytes);
    this.deps.bytes.clearDeadline(this);
    if (this.hasSlot) {
      this.deps.release(this);
      this.connection.release();
    }
    this.deps.onEnd(this, this.code, this.finishedMs ?? performance.now());
  }
}
