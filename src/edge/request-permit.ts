/** Permit of a request or stream: its slot and its reserved bytes, released when it ends in any way. */
import type { RpcError, Outcome } from "../rpc/errors.js";
import type { Arrival, Permit, Protocol } from "../rpc/gate.js";
import type { Caller, ServedMethod } from "../rpc/service.js";
import type { AddressUsage } from "./address-usage.js";
import type { ByteBudget, ReservingRequest } from "./byte-budget.js";
import type { TrackedConnection } from "./connection-limit.js";

/** Properties of a request at admission. */
export interface AdmittedRequest {
  readonly arrival: Arrival;
  readonly address: string;
  readonly protocol: Protocol;
  readonly method: ServedMethod | undefined;
  /** Start time on the clock of `performance.now()`. */
  readonly startMs: number;
}

/** Dependencies of permits. */
export interface PermitDeps {
  readonly bytes: ByteBudget;
  charge(address: string, chargedBytes: number): void;
  /** Returns the identity that the headers of a request prove. Throws RpcError INVALID_SIGNATURE. */
  identify(arrival: Arrival): string | undefined;
  onEnd(permit: RequestPermit, code: Outcome, endMs: number): void;
}

export class RequestPermit implements Permit, AdmittedRequest, ReservingRequest {
  private code: Outcome = "CANCELLED";
  private finishedMs: number | undefined;
  private reservedBytes = 0;
  /** Reserved bytes that wait to be sent. */
  private unreadBytes = 0;
  private requestBytes = 0;
  private isReleased = false;
  next: ReservingRequest | undefined;
  previous: ReservingRequest | undefined;
  readByMs: number | undefined;
  ready: Promise<void> | undefined;

  readonly arrival: Arrival;
  readonly address: string;
  readonly protocol: Protocol;
  method: ServedMethod | undefined;
  readonly startMs: number;

  constructor(
    { arrival, address, protocol, method, startMs }: AdmittedRequest,
    public headers: readonly string[],
    readonly isStream: boolean,
    readonly usage: AddressUsage,
    private readonly deps: PermitDeps,
  ) {
    this.arrival = arrival;
    this.address = address;
    this.protocol = protocol;
    this.method = method;
    this.startMs = startMs;
    this.connection.acquire();
  }

  get connection(): TrackedConnection {
    return this.arrival.connection as TrackedConnection;
  }

  callerOf(method: ServedMethod | undefined): Caller {
    const { address, arrival } = this;
    const proven = arrival.connection.provenIdentity;
    const identity = proven ?? (method?.identifiesCaller === true ? this.deps.identify(arrival) : undefined);
    return { address, identity };
  }

  recordOutcome(failure?: RpcError): void {
    if (this.finishedMs === undefined) {
      this.finishedMs = performance.now();
      this.code = failure?.reason ?? "OK";
    }
  }

  reserveRequestBytes(bytes: number): void {
    if (!this.isReleased) {
      this.reserve(bytes);
      this.requestBytes += bytes;
    }
  }

  private reserve(bytes: number): void {
    if (this.deps.bytes.exceedsQuota(this, bytes)) {
      this.connection.penalize();
    }
    this.deps.bytes.reserve(this, bytes);
    this.reservedBytes += bytes;
  }

  reserveResponseBytes(bytes: number, chargedBytes = bytes): void {
    if (this.isReleased || bytes === 0) {
      return;
    }
    this.reserve(bytes);
    this.unreadBytes += bytes;
    this.deps.bytes.setDeadline(this, Math.max(this.unreadBytes, chargedBytes));
    this.deps.charge(this.address, chargedBytes);
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

  abort(): void {
    this.connection.penalize();
    this.arrival.abort();
  }

  release(): void {
    if (this.isReleased) {
      return;
    }
    this.isReleased = true;
    this.deps.charge(this.address, this.requestBytes);
    this.deps.bytes.release(this, this.reservedBytes);
    this.deps.bytes.clearDeadline(this);
    this.connection.release();
    this.deps.onEnd(this, this.code, this.finishedMs ?? performance.now());
  }
}
