/**
 * What every connection, request and stream meets first, whatever protocol brings it: address, overload, rate limit,
 * bounds of connections, streams and unsent bytes, access log. What it lets in is a lease that ends with it.
 */
import { RpcError, toRpcError } from "../rpc/errors.js";
import type { Arrival, Gate } from "../rpc/gate.js";
import type { ServedMethod } from "../rpc/service.js";
import type { AccessLine } from "./access-log.js";
import { createUsageTracker, type UsageByNetwork } from "./address-usage.js";
import { createAddressSet, addressPrefixOf } from "./cidr.js";
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
  /** CIDR ranges of proxies whose forwarding headers are believed. */
  readonly trustedProxies: readonly string[];
  /** Requests a minute for an address; 0 for no limit. */
  readonly rateLimitPerMinute: number;
  /** CIDR ranges that are not counted. */
  readonly rateLimitExempt: readonly string[];
  /** When new work is refused; the defaults when left out, as for the other bounds. */
  readonly overload?: OverloadBounds;
  readonly connections?: ConnectionLimits;
  readonly streams?: StreamLimits;
  readonly bytes?: ByteBounds;
  readonly onSettled?: (request: FinishedRequest, arrival: Arrival) => void;
  /** What the answer of an rpc tells in its headers beside the rate limit: a flat list of names and values. */
  readonly headersOf?: (method: ServedMethod) => readonly string[];
  /** Takes a line for an answered request, so many a second. */
  readonly onAccess: (line: AccessLine) => void;
  /** Hears, at most once a second, that an address is shut out for a while, since it only does harm. */
  readonly onShutOut?: (address: string) => void;
  /** Hears, once, that requests are forwarded by a local proxy that is not trusted. */
  readonly onUntrustedForwarding: () => void;
  /** Other processes serve the same callers, and are told what they do here. */
  readonly isShared?: boolean;
  /** What a request waits for whose caller wants nothing from before a block; undefined where that is there already. */
  readonly untilBlock?: (leastBlock: bigint) => Promise<void> | undefined;
}

/** What callers did in one of the processes that serve them, for the others. */
export interface SharedUsage {
  /** What addresses have there. */
  readonly places: UsageByNetwork;
  /** What they were charged for their rate. */
  readonly charges: Charges;
  /** Those that it has shut out. */
  readonly shutOut: readonly string[];
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
  /** What callers did here since this was last asked. */
  takeUsage(): SharedUsage;
  /** What they did in other processes of this node: bounds and limits hold for all of it. */
  hearUsage(usage: SharedUsage): void;
  /** Ends what the edge does by itself. */
  stop(): void;
}

/** A refusal costs little, and who was refused may not know yet. */
const strikesOfRefusal = 0.25;
/** How often slow readers are cut. */
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
 * The block that a caller names as the oldest whose state he takes, as one does who has seen it elsewhere: whoever answers
 * him may not be there yet.
 *
 * @throws Failure INVALID_REQUEST
 */
function leastBlockOf(arrival: Arrival): bigint | undefined {
  const named = arrival.header("gatehouse-min-block");
  if (named === undefined) {
    return undefined;
  }
  if (!/^\d{1,19}$/.test(named)) {
    throw new RpcError("INVALID_REQUEST", "Gatehouse-Min-Block takes the number of a block.");
  }
  return BigInt(named);
}

/** Who asks again and again beyond what his address may have is struck; a proxy is not for those that it asks for. */
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

/** Tells, once, of requests that a local proxy forwards which nobody trusts. */
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
