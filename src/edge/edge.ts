/**
 * What every connection, request and stream meets first, whatever protocol brings it: address, identity, overload, rate
 * limit, bounds of connections, streams and unsent bytes, access log. What it lets in is a lease that ends with it.
 */
import { type Failure, type Outcome, toFailure } from "../rpc/errors.js";
import type { Arrival, Gate, Lease, Protocol } from "../rpc/gate.js";
import type { Caller, ServedMethod } from "../rpc/service.js";
import { type AccessLine, createAccessLog } from "./access-log.js";
import { type Account, createAccounts } from "./accounts.js";
import { createAddressSet, networkOf } from "./cidr.js";
import { createClientAddress } from "./client-address.js";
import { type ByteBounds, type ByteBudget, createByteBudget, defaultBytes, type Holder } from "./byte-budget.js";
import { type ConnectionBounds, createConnections, defaultConnections, type HeldConnection } from "./connections.js";
import { createIdentify, type IdentityMode } from "./identity.js";
import { createOverload, defaultOverload, type OverloadBounds } from "./overload.js";
import { bytesPerRequest, createRateLimit, type RateLimitCounts } from "./rate-limit.js";
import { createStreams, defaultStreams, type StreamBounds } from "./streams.js";

export interface EdgeSettings {
  /** CIDR ranges of proxies whose forwarding headers are believed. */
  readonly trustedProxies: readonly string[];
  readonly identityMode: IdentityMode;
  /** Requests a minute for an address; 0 for no limit. */
  readonly rateLimitPerMinute: number;
  /** CIDR ranges that are not counted. */
  readonly rateLimitExempt: readonly string[];
  /** When new work is refused; the defaults when left out, as for the other bounds. */
  readonly overload?: OverloadBounds;
  readonly connections?: ConnectionBounds;
  readonly streams?: StreamBounds;
  readonly bytes?: ByteBounds;
  readonly onSettled?: (request: Omit<AccessLine, "address">, arrival: Arrival) => void;
  /** Takes a line for an answered request, up to {@link accessLinesPerSecond}. */
  readonly onAccess: (line: AccessLine) => void;
  /** Hears, at most once a second, that an address is shut out for a while, since it only does harm. */
  readonly onShutOut?: (address: string) => void;
  /** Hears, once, that requests are forwarded by a local proxy that is not trusted. */
  readonly onUntrustedForwarding: () => void;
}

export type EdgeStats = RateLimitCounts & {
  /** Requests under way, streams apart. */
  readonly activeRequests: number;
  readonly openStreams: number;
  readonly openConnections: number;
  /** Bytes of requests and of answers that wait to be sent. */
  readonly heldBytes: number;
};

export interface Edge extends Gate {
  /** Counts for the rate limiter's statistics and the metrics. */
  stats(): EdgeStats;
  /** Ends what the edge does by itself. */
  stop(): void;
}

/** Most lines of the access log in a second. */
const accessLinesPerSecond = 20;
/** A refusal costs little, and who was refused may not know yet. */
const strikesOfRefusal = 0.25;
/** How often slow readers are cut. */
const sweepEveryMs = 1_000;
const noHeaders: readonly string[] = [];

export function createEdge(settings: EdgeSettings): Edge {
  const isTrustedProxy = createAddressSet(settings.trustedProxies);
  const clientAddress = createClientAddress(isTrustedProxy);
  const identify = createIdentify(settings.identityMode, Date.now);
  const isExempt = createAddressSet(settings.rateLimitExempt);
  const isLoopback = createAddressSet(["127.0.0.0/8", "::1"]);
  const rateLimit = createRateLimit(settings.rateLimitPerMinute);
  const overload = createOverload(settings.overload ?? defaultOverload);
  const connections = createConnections({
    bounds: settings.connections ?? defaultConnections,
    isTrustedProxy,
    isExempt,
    nowMs: () => performance.now(),
    onShutOut: atMostEachSecond(settings.onShutOut ?? (() => undefined)),
  });
  const streams = createStreams(settings.streams ?? defaultStreams);
  const bytes = createByteBudget(settings.bytes ?? defaultBytes);
  const logAnswered = createAccessLog(settings.onAccess, accessLinesPerSecond, Date.now);
  // Whoever gives up gets few lines: it is what an attack is made of.
  const logCancelled = createAccessLog(settings.onAccess, 1, Date.now);
  const accounts = createAccounts();
  let activeRequests = 0;
  let warned = settings.trustedProxies.length > 0;

  function warnOfUntrustedForwarding(arrival: Arrival, address: string): void {
    const forwarded = arrival.header("x-forwarded-for") ?? arrival.header("forwarded");
    if (forwarded !== undefined && isLoopback(address)) {
      warned = true;
      settings.onUntrustedForwarding();
    }
  }

  /** Counts and logs how a request ended. */
  function tell(entered: Entered, code: Outcome, endMs: number): void {
    const { arrival, address, protocol, startMs } = entered;
    const describe = (): Omit<AccessLine, "address"> => ({
      requestId: arrival.requestId,
      protocol,
      rpc: entered.method && rpcName(entered.method),
      code,
      latencyMs: Math.round((endMs - startMs) * 1000) / 1000,
    });
    settings.onSettled?.(describe(), arrival);
    (code === "CANCELLED" ? logCancelled : logAnswered)(() => ({ ...describe(), address }));
  }

  const sweeper = setInterval(() => bytes.sweep(), sweepEveryMs).unref();

  /** Takes a place for a request or a stream, if its address may have one more. */
  function takePlace({ connection }: Arrival, account: Account, isStream: boolean, isProbe: boolean): void {
    if (isStream || !isProbe) {
      overload.checkAddress(account.requests);
      bytes.check(account, connection as HeldConnection);
    }
    if (isStream) {
      streams.open(account);
    }
  }

  /** Who asks again and again beyond what his address may have is struck; a proxy is not for those that it asks for. */
  function strikeRefused<T>({ connection }: Arrival, address: string, take: () => T): T {
    try {
      return take();
    } catch (error) {
      if (connection.remoteAddress === address) {
        connection.strike(strikesOfRefusal);
      }
      throw error;
    }
  }

  const leasing: Leasing = {
    bytes,
    charge(address, weightBytes) {
      if (weightBytes >= bytesPerRequest && !isExempt(address)) {
        rateLimit.weigh(address, weightBytes);
      }
    },
    onEnd(lease, code, endMs) {
      if (lease.isStream) {
        streams.close(lease.account);
      } else {
        activeRequests--;
        lease.account.requests--;
      }
      tell(lease, code, endMs);
    },
  };

  return {
    connect: (remoteAddress, cut) => connections.connect(remoteAddress, cut),
    admit(arrival, protocol, method) {
      const startMs = performance.now();
      const address = clientAddress(arrival.connection.remoteAddress, (name) => arrival.header(name));
      if (!warned) {
        warnOfUntrustedForwarding(arrival, address);
      }
      const account = accounts.of(networkOf(address));
      const isStream = method !== undefined && method.desc.methodKind !== "unary";
      try {
        let headers = noHeaders;
        const isProbe = method?.isProbe === true;
        if (isStream || !isProbe) {
          overload.check(activeRequests);
          if (!isExempt(address)) {
            headers = strikeRefused(arrival, address, () => rateLimit.count(address));
          }
        }
        const identity = arrival.connection.provenIdentity ?? identify((name) => arrival.header(name));
        strikeRefused(arrival, address, () => takePlace(arrival, account, isStream, isProbe));
        if (!isStream) {
          activeRequests++;
          account.requests++;
        }
        const lease = new EdgeLease(
          arrival,
          protocol,
          method,
          startMs,
          { address, identity },
          headers,
          isStream,
          account,
          leasing,
        );
        arrival.onClose(() => lease.end());
        return lease;
      } catch (error) {
        tell({ arrival, address, protocol, method, startMs }, toFailure(error).reason, performance.now());
        throw error;
      }
    },
    stats: () => ({
      ...rateLimit.counts(),
      activeRequests,
      openStreams: streams.openCount,
      openConnections: connections.size,
      heldBytes: bytes.heldBytes,
    }),
    stop() {
      overload.stop();
      clearInterval(sweeper);
    },
  };
}

/** What is known of a request at the door. */
interface Entered {
  readonly arrival: Arrival;
  readonly address: string;
  readonly protocol: Protocol;
  readonly method: ServedMethod | undefined;
  /** On the clock of `performance.now()`. */
  readonly startMs: number;
}

/** What leases need of the edge. */
interface Leasing {
  readonly bytes: ByteBudget;
  charge(address: string, weightBytes: number): void;
  onEnd(lease: EdgeLease, code: Outcome, endMs: number): void;
}

class EdgeLease implements Lease, Entered, Holder {
  private code: Outcome = "CANCELLED";
  private settledMs: number | undefined;
  private heldBytes = 0;
  /** Of those, the ones that wait to be read. */
  private unreadBytes = 0;
  private isEnded = false;
  next: Holder | undefined;
  previous: Holder | undefined;
  readByMs: number | undefined;

  constructor(
    readonly arrival: Arrival,
    readonly protocol: Protocol,
    public method: ServedMethod | undefined,
    readonly startMs: number,
    readonly caller: Caller,
    readonly headers: readonly string[],
    readonly isStream: boolean,
    readonly account: Account,
    private readonly leasing: Leasing,
  ) {
    this.connection.hold();
  }

  get address(): string {
    return this.caller.address;
  }

  get connection(): HeldConnection {
    return this.arrival.connection as HeldConnection;
  }

  settle(failure?: Failure): void {
    if (this.settledMs === undefined) {
      this.settledMs = performance.now();
      this.code = failure?.reason ?? "OK";
    }
  }

  hold(bytes: number): void {
    if (this.isEnded) {
      return;
    }
    if (this.leasing.bytes.isShareFull(this, bytes)) {
      this.connection.strike();
    }
    this.leasing.bytes.take(this, bytes);
    this.heldBytes += bytes;
  }

  charge(bytes: number, weightBytes = bytes): void {
    if (this.isEnded) {
      return;
    }
    this.hold(bytes);
    this.unreadBytes += bytes;
    this.leasing.bytes.expect(this, Math.max(this.unreadBytes, weightBytes));
    this.leasing.charge(this.address, weightBytes);
  }

  discharge(bytes: number): void {
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
    this.connection.strike();
    this.arrival.cut();
  }

  end(): void {
    if (this.isEnded) {
      return;
    }
    this.isEnded = true;
    if (this.heldBytes > 0) {
      this.leasing.bytes.give(this, this.heldBytes);
      this.leasing.bytes.forget(this);
    }
    this.connection.release();
    this.leasing.onEnd(this, this.code, this.settledMs ?? performance.now());
  }
}

function atMostEachSecond<T>(tell: (what: T) => void): (what: T) => void {
  let nextMs = 0;
  return (what) => {
    const now = performance.now();
    if (now >= nextMs) {
      nextMs = now + 1_000;
      tell(what);
    }
  };
}

const rpcNames = new WeakMap<ServedMethod, string>();

/** `package.Service/Method`, put together once. */
function rpcName(method: ServedMethod): string {
  let name = rpcNames.get(method);
  if (name === undefined) {
    name = `${method.desc.parent.typeName}/${method.desc.name}`;
    rpcNames.set(method, name);
  }
  return name;
}
