/**
 * Admission layer: every connection, request and stream passes it first, in each protocol. It checks the address,
 * overload, the rate limit, and limits on connections, streams and unsent bytes, and writes the access log. An admitted
 * request gets a permit that is released when it ends.
 */
import { RpcError, toRpcError } from "../rpc/errors.js";
import type { Arrival, Gate } from "../rpc/gate.js";
import type { ServedMethod } from "../rpc/service.js";
import type { AccessLine } from "./access-log.js";
import { createUsageTracker, type UsageByNetwork } from "./address-usage.js";
import { addressPrefixOf } from "../base/ip-address.js";
import { createAddressSet } from "./cidr.js";
import { createClientAddress } from "./client-address.js";
import { type ByteBounds, createByteBudget, defaultBytes } from "./byte-budget.js";
import { type ConnectionLimits, createConnectionLimit, defaultConnections } from "./connection-limit.js";
import { createIdentify, type IdentitySettings } from "./identity.js";
import { RequestPermit, type Leasing } from "./request-permit.js";
import { createOverload, defaultOverload, type OverloadBounds } from "./overload.js";
import { createConcurrencySlots } from "./concurrency-slots.js";
import { bytesPerRequest, type Charges, createRateLimit, type RateLimitCounts } from "./rate-limit.js";
import { createStreamLimit, defaultStreams, type StreamLimits } from "./stream-limit.js";
import { createRequestReporter, type FinishedRequest, isStream } from "./request-reporter.js";

export interface EdgeSettings extends IdentitySettings {
  /** CIDR ranges of proxies with trusted forwarding headers. */
  readonly trustedProxies: readonly string[];
  /** Rate limit per address, in requests per minute; 0 disables the limit. */
  readonly rateLimitPerMinute: number;
  /** CIDR ranges that are exempt from the rate limit. */
  readonly rateLimitExempt: readonly string[];
  /** Overload limits. Defaults apply if they or the limits below are left out. */
  readonly overload?: OverloadBounds;
  readonly connections?: ConnectionLimits;
  readonly streams?: StreamLimits;
  readonly bytes?: ByteBounds;
  readonly onSettled?: (request: FinishedRequest, arrival: Arrival) => void;
  /** Returns headers for the response of an rpc, in addition to the rate limit: a flat list of names and values. */
  readonly headersOf?: (method: ServedMethod) => readonly string[];
  /** Called with a line of the access log for a finished request; limited per second. */
  readonly onAccess: (line: AccessLine) => void;
  /** Called, at most once per second, with an address that is banned temporarily. */
  readonly onShutOut?: (address: string) => void;
  /** Called once, if a local proxy that is not trusted forwards requests. */
  readonly onUntrustedForwarding: () => void;
  /** True if other processes serve the same callers, so that usage has to be shared with them. */
  readonly isShared?: boolean;
  /**
   * Returns a promise that resolves when the node has the block that the caller requires; undefined if it has it
   * already.
   */
  readonly untilBlock?: (leastBlock: bigint) => Promise<void> | undefined;
}

/** Usage of callers in one process, for the other processes that serve them. */
export interface SharedUsage {
  /** Usage by address. */
  readonly places: UsageByNetwork;
  /** Requests charged against rate limits. */
  readonly charges: Charges;
  /** Banned address prefixes. */
  readonly shutOut: readonly string[];
}

export type EdgeStats = RateLimitCounts & {
  /** Requests in flight, without streams. */
  readonly activeRequests: number;
  readonly openStreams: number;
  readonly openConnections: number;
  /** Bytes reserved for requests and for responses that wait to be sent. */
  readonly heldBytes: number;
};

export interface Edge extends Gate {
  /** Returns statistics of the rate limiter and values for the metrics. */
  stats(): EdgeStats;
  /** Returns the usage in this process since the last call. */
  takeUsage(): SharedUsage;
  /** Receives usage from other processes of this node, because limits apply to all of them together. */
  hearUsage(usage: SharedUsage): void;
  /** Stops the timers. */
  stop(): void;
}

/**
 * Penalty for a rejected request. It is small, because a rejection is cheap and the client may not know its limit yet.
 */
const strikesOfRefusal = 0.25;
/** Interval in milliseconds between checks for slow readers. */
const sweepEveryMs = 1_000;
const noHeaders: readonly string[] = [];

export function createEdge(settings: EdgeSettings): Edge {
  const isTrustedProxy = createAddressSet(settings.trustedProxies);
  const clientAddress = createClientAddress(isTrustedProxy);
  const identify = createIdentify(settings, Date.now);
  const isExempt = createAddressSet(settings.rateLimitExempt);
  const rateLimit = createRateLimit(settings.rateLimitPerMinute, settings.isShared);
  const overload = createOverload(settings.overload ?? defaultOverload);
  const accounts = createUsageTracker();
  const tellShutOut = atMostEachSecond(settings.onShutOut ?? (() => undefined));
  let shutOut: string[] = [];
  const connections = createConnectionLimit({
    bounds: settings.connections ?? defaultConnections,
    accounts,
    isTrustedProxy,
    isExempt,
    nowMs: () => performance.now(),
    onShutOut(address, network) {
      tellShutOut(address);
      if (settings.isShared === true) {
        shutOut.push(network);
      }
    },
  });
  const streams = createStreamLimit(settings.streams ?? defaultStreams);
  const bytes = createByteBudget(settings.bytes ?? defaultBytes);
  const places = createConcurrencySlots(overload, streams, bytes);
  const tell = createRequestReporter(settings);
  const lookForProxies = createProxyWatch(settings);
  const sweeper = setInterval(() => bytes.sweep(), sweepEveryMs).unref();

  const leasing: Leasing = {
    bytes,
    charge(address, weightBytes) {
      if (weightBytes >= bytesPerRequest && !isExempt(address)) {
        rateLimit.weigh(address, weightBytes);
      }
    },
    identify: (arrival) => identify((name) => arrival.header(name)),
    onEnd(lease, code, endMs) {
      places.give(lease.account, lease.isStream);
      tell(lease, code, endMs);
    },
  };

  function headersOf(method: ServedMethod | undefined, ofRate: readonly string[]): readonly string[] {
    const told = (method && settings.headersOf?.(method)) ?? noHeaders;
    return ofRate.length === 0 ? told : [...told, ...ofRate];
  }

  return {
    connect: (remoteAddress, cut) => connections.connect(remoteAddress, cut),
    admit(arrival, protocol, method) {
      const startMs = performance.now();
      const { connection } = arrival;
      const address = clientAddress(connection.remoteAddress, (name) => arrival.header(name));
      lookForProxies(arrival, address);
      const isOpenEnded = isStream(method);
      const isProbe = method?.isProbe === true;
      const account = accounts.of(addressPrefixOf(address));
      try {
        let ofRate = noHeaders;
        if (isOpenEnded || !isProbe) {
          overload.check(places.activeRequests);
          if (!isExempt(address)) {
            ofRate = strikeRefused(arrival, address, () => rateLimit.count(address));
          }
        }
        const leastBlock = isProbe ? undefined : leastBlockOf(arrival);
        strikeRefused(arrival, address, () => places.take({ connection, account, isStream: isOpenEnded, isProbe }));
        const entered = { arrival, address, protocol, method, startMs };
        const lease = new RequestPermit(entered, headersOf(method, ofRate), isOpenEnded, account, leasing);
        arrival.onClose(() => lease.release());
        lease.ready = leastBlock === undefined ? undefined : settings.untilBlock?.(leastBlock);
        lease.ready = lease.ready?.then(() => void (lease.headers = headersOf(method, ofRate)));
        return lease;
      } catch (error) {
        tell({ arrival, address, protocol, method, startMs }, toRpcError(error).reason, performance.now());
        throw error;
      }
    },
    stats: () => ({
      ...rateLimit.counts(),
      activeRequests: places.activeRequests,
      openStreams: streams.openCount,
      openConnections: connections.size,
      heldBytes: bytes.heldBytes,
    }),
    takeUsage() {
      const usage = { places: accounts.takeChanged(), charges: rateLimit.takeCharged(), shutOut };
      shutOut = [];
      return usage;
    },
    hearUsage(usage) {
      accounts.hear(usage.places);
      rateLimit.hear(usage.charges);
      connections.hear(usage.shutOut);
    },
    stop() {
      overload.stop();
      clearInterval(sweeper);
    },
  };
}

/**
 * Returns the block that the caller requires the state to include; undefined if none. The caller may have seen that
 * block on another node that is ahead of this one.
 *
 * @throws RpcError INVALID_REQUEST
 */
function leastBlockOf(arrival: Arrival): bigint | undefined {
  const named = arrival.header("gatehouse-min-block");
  if (named === undefined) {
    return undefined;
  }
  if (!/^\d{1,19}$/.test(named)) {
    throw new RpcError("INVALID_REQUEST", "Gatehouse-Min-Block must be the number of a block.");
  }
  return BigInt(named);
}

/** Penalizes the connection if the request is rejected for its limits. A proxy is not penalized for its clients. */
function strikeRefused<T>({ connection }: Arrival, address: string, take: () => T): T {
  try {
    return take();
  } catch (error) {
    if (connection.remoteAddress === address) {
      connection.penalize(strikesOfRefusal);
    }
    throw error;
  }
}

/** Creates a function that reports, once, requests forwarded by a local proxy that is not trusted. */
function createProxyWatch({
  trustedProxies,
  onUntrustedForwarding,
}: EdgeSettings): (arrival: Arrival, address: string) => void {
  const isLoopback = createAddressSet(["127.0.0.0/8", "::1"]);
  let isDone = trustedProxies.length > 0;
  return (arrival, address) => {
    if (isDone) {
      return;
    }
    const forwarded = arrival.header("x-forwarded-for") ?? arrival.header("forwarded");
    if (forwarded !== undefined && isLoopback(address)) {
      isDone = true;
      onUntrustedForwarding();
    }
  };
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
