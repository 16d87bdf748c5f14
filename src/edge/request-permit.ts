/** Permit of a request or stream: its slot and its reserved bytes, released when it ends in any way. */
import type { RpcError, Outcome } from "../rpc/errors.js";
import type { Arrival, Permit, Protocol } from "../rpc/gate.js";
import type { Caller, ServedMethod } from "../rpc/service.js";
import type { AddressUsage } from "./address-usage.js";
import type { ByteBudget, Holder } from "./byte-budget.js";
import type { HeldConnection } from "./connection-limit.js";

/** Properties of a request at admission. */
export interface Entered {
  readonly arrival: Arrival;
  readonly address: string;
  readonly protocol: Protocol;
  readonly method: ServedMethod | undefined;
  /** Start time on the clock of `performance.now()`. */
  readonly startMs: number;
}

/** Dependencies of permits. */
export interface Leasing {
  readonly bytes: ByteBudget;
  charge(address: string, weightBytes: number): void;
  /** Returns the identity that the headers of a request prove. Throws RpcError INVALID_SIGNATURE. */
  identify(arrival: Arrival): string | undefined;
  onEnd(lease: RequestPermit, code: Outcome, endMs: number): void;
}

export class RequestPermit implements Permit, Entered, Holder {
  private code: Outcome = "CANCELLED";
  private settledMs: number | undefined;
  private heldBytes = 0;
  /** Reserved bytes that wait to be sent. */
  private unreadBytes = 0;
  private requestBytes = 0;
  private isEnded = false;
  next: Holder | undefined;
  previous: Holder | undefined;
  readByMs: number | undefined;
  ready: Promise<void> | undefined;

  readonly arrival: Arrival;
  readonly address: string;
  readonly protocol: Protocol;
  method: ServedMethod | undefined;
  readonly startMs: number;

  constructor(
    { arrival, address, protocol, method, startMs }: Entered,
    public headers: readonly string[],
    readonly isStream: boolean,
    readonly account: AddressUsage,
    private readonly leasing: Leasing,
  ) {
    this.arrival = arrival;
    this.address = address;
    this.protocol = protocol;
    this.method = method;
    this.startMs = startMs;
    this.connection.hold();
  }

  get connection(): HeldConnection {
    return this.arrival.connection as HeldConnection;
  }

  callerOf(method: ServedMethod | undefined): Caller {
    const { address, arrival } = this;
    const proven = arrival.connection.provenIdentity;
    const identity = proven ?? (method?.identifiesCaller === true ? this.leasing.identify(arrival) : undefined);
    return { address, identity };
  }

  recordOutcome(failure?: RpcError): void {
    if (this.settledMs === undefined) {
      this.settledMs = performance.now();
      this.code = failure?.reason ?? "OK";
    }
  }

  reserveRequestBytes(bytes: number): void {
    if (!this.isEnded) {
      this.takeRoom(bytes);
      this.requestBytes += bytes;
    }
  }

  private takeRoom(bytes: number): void {
    if (this.leasing.bytes.isShareFull(this, bytes)) {
      this.connection.penalize();
    }
    this.leasing.bytes.take(this, bytes);
    this.heldBytes += bytes;
  }

  reserveResponseBytes(bytes: number, weightBytes = bytes): void {
    if (this.isEnded || bytes === 0) {
      return;
    }
    this.takeRoom(bytes);
    this.unreadBytes += bytes;
    this.leasing.bytes.expect(this, Math.max(this.unreadBytes, weightBytes));
    this.leasing.charge(this.address, weightBytes);
  }

  releaseResponseBytes(bytes: number): void {
    if (this.isEnded) {
      return;
    }
    this.heldBytes -= bytes;
    this.unreadBytes -= bytes;
    this.leasing.bytes.give(this, bytes);
    if (this.unreadBytes === 0) {
      this.leasing.bytes.forget(this);
    }
  }

  cut(): void {
    this.connection.penalize();
    this.arrival.abort();
  }

  release(): void {
    if (this.isEnded) {
      return;
    }
    this.isEnded = true;
    this.leasing.charge(this.address, this.requestBytes);
    this.leasing.bytes.give(this, this.heldBytes);
    this.leasing.bytes.forget(this);
    this.connection.release();
    this.leasing.onEnd(this, this.code, this.settledMs ?? performance.now());
  }
}
