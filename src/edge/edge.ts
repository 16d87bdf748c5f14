/**
 * Admission layer: every connection, request and stream passes it first, in each protocol. It checks the address,
 * overload, the rate limit, and limits on connections, streams and unsent bytes, and writes the access log. An admitted
 * request gets a permit that is released when it ends.
 */
import { RpcError, toRpcError } from "../rpc/errors.js";
import type { Arrival, Gate } from "../rpc/gate.js";
import type { ServedMethod } from "../rpc/service.js";
import type { AccessLine } from "./access-log.js";
import { createUsageTracker, type UsageByPrefix } from "./address-usage.js";
import { addressPrefixOf } from "../base/ip-address.js";
import { createAddressSet } from "./cidr.js";
import { createClientAddress } from "./client-address.js";
import { type ByteLimits, createByteBudget, defaultBytes } from "./byte-budget.js";
import { type ConnectionLimits, createConnectionLimit, defaultConnections } from "./connection-limit.js";
import { createIdentify, type IdentitySettings } from "./identity.js";
import { RequestPermit, type PermitDeps } from "./request-permit.js";
import { createOverload, defaultOverload, type OverloadLimits } from "./overload.js";
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
  readonly overload?: OverloadLimits;
  readonly connections?: ConnectionLimits;
  readonly streams?: StreamLimits;
  readonly bytes?: ByteLimits;
  readonly onFinished?: (request: FinishedRequest, arrival: Arrival) => void;
  /** Returns headers for the response of an rpc, in addition to the rate limit: a flat list of names and values. */
  readonly headersOf?: (method: ServedMethod) => readonly string[];
  /** Called with a line of the access log for a finished request; limited per second. */
  readonly onAccess: (line: AccessLine) => void;
  /** Called, at most once per second, with an address that is banned temporarily. */
  readonly onBan?: (address: string) => void;
  /** Called once, if a local proxy that is not trusted forwards requests. */
  readonly onUntrustedForwarding: () => void;
  /** True if other processes serve the same callers, so that usage has to be shared with them. */
  readonly isShared?: boolean;
  /**
   * Returns a promise that resolves when the node has the block that the caller requires; undefined if it has it
   * already.
   */
  readonly untilBlock?: (minBlock: bigint) => Promise<void> | undefined;
}

/** Usage of callers in one process, for the other processes that serve them. */
export interface SharedUsage {
  /** Usage by address. */
  readonly usages: UsageByPrefix;
  /** Requests charged against rate limits. */
  readonly charges: Charges;
  /** Banned address prefixes. */
  readonly banned: readonly string[];
}

export type EdgeStats = RateLimitCounts & {
  /** Requests in flight, without streams. */
  readonly activeRequests: number;
  readonly openStreams: number;
  readonly openConnections: number;
  /** Bytes reserved for requests and for responses that wait to be sent. */
  readonly reservedBytes: number;
};

export interface Edge extends Gate {
  /** Returns statistics of the rate limiter and values for the metrics. */
  stats(): EdgeStats;
  /** Returns the usage in this process since the last call. */
  drainUsage(): SharedUsage;
  /** Receives usage from other processes of this node, because limits apply to all of them together. */
  receiveUsage(usage: SharedUsage): void;
  /** Stops the timers. */
  stop(): void;
}

/**
 * Penalty for a rejected request. It is small, because a rejection is cheap and the client may not know its limit yet.
 */
const rejectionPenalty = 0.25;
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
  const usageTracker = createUsageTracker();
  const reportBan = oncePerSecond(settings.onBan ?? (() => undefined));
  let banned: string[] = [];
  const connections = createConnectionLimit({
    limits: settings.connections ?? defaultConnections,
    usageTracker,
    isTrustedProxy,
    isExempt,
    nowMs: () => performance.now(),
    onBan(address, prefix) {
      reportBan(address);
      if (settings.isShared === true) {
        banned.push(prefix);
      }
    },
  });
  const streams = createStreamLimit(settings.streams ?? defaultStreams);
  const bytes = createByteBudget(settings.bytes ?? defaultBytes);
  const slots = createConcurrencySlots(overload, streams, bytes);
  const reportRequest = createRequestReporter(settings);
  const checkForProxies = createProxyCheck(settings);
  const sweeper = setInterval(() => bytes.sweep(), sweepEveryMs).unref();

  const permitDeps: PermitDeps = {
    bytes,
    charge(address, chargedBytes) {
      if (chargedBytes >= bytesPerRequest && !isExempt(address)) {
        rateLimit.chargeBytes(address, chargedBytes);
      }
    },
    identify: (arrival) => identify((name) => arrival.header(name)),
    onEnd(permit, code, endMs) {
      slots.release(permit.usage, permit.isStream);
      reportRequest(permit, code, endMs);
    },
  };

  function headersOf(method: ServedMethod | undefined, rateHeaders: readonly string[]): readonly string[] {
    const headers = (method && settings.headersOf?.(method)) ?? noHeaders;
    return rateHeaders.length === 0 ? headers : [...headers, ...rateHeaders];
  }

  return {
    connect: (remoteAddress, abort) => connections.connect(remoteAddress, abort),
    admit(arrival, protocol, method) {
      const startMs = performance.now();
      const { connection } = arrival;
      const address = clientAddress(connection.remoteAddress, (name) => arrival.header(name));
      checkForProxies(arrival, address);
      const isStreaming = isStream(method);
      const isProbe = method?.isProbe === true;
      const usage = usageTracker.of(addressPrefixOf(address));
      try {
        let rateHeaders = noHeaders;
        if (isStreaming || !isProbe) {
          overload.check(slots.activeRequests);
          if (!isExempt(address)) {
            rateHeaders = penalizeRejection(arrival, address, () => rateLimit.count(address));
          }
        }
        const minBlock = isProbe ? undefined : minBlockOf(arrival);
        penalizeRejection(arrival, address, () => slots.acquire({ connection, usage, isStream: isStreaming, isProbe }));
        const admitted = { arrival, address, protocol, method, startMs };
        const permit = new RequestPermit(admitted, headersOf(method, rateHeaders), isStreaming, usage, permitDeps);
        arrival.onClose(() => permit.release());
        permit.ready = minBlock === undefined ? undefined : settings.untilBlock?.(minBlock);
        permit.ready = permit.ready?.then(() => void (permit.headers = headersOf(method, rateHeaders)));
        return permit;
      } catch (error) {
        reportRequest({ arrival, address, protocol, method, startMs }, toRpcError(error).reason, performance.now());
        throw error;
      }
    },
    stats: () => ({
      ...rateLimit.counts(),
      activeRequests: slots.activeRequests,
      openStreams: streams.openCount,
      openConnections: connections.size,
      reservedBytes: bytes.reservedBytes,
    }),
    drainUsage() {
      const usage = { usages: usageTracker.drainChanged(), charges: rateLimit.drainCharges(), banned };
      banned = [];
      return usage;
    },
    receiveUsage(usage) {
      usageTracker.receive(usage.usages);
      rateLimit.receive(usage.charges);
      connections.banAll(usage.banned);
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
function minBlockOf(arrival: Arrival): bigint | undefined {
  const value = arrival.header("gatehouse-min-block");
  if (value === undefined) {
    return undefined;
  }
  if (!/^\d{1,19}$/.test(value)) {
    throw new RpcError("INVALID_REQUEST", "Gatehouse-Min-Block must be the number of a block.");
  }
  return BigInt(value);
}

/** Penalizes the connection if the request is rejected for its limits. A proxy is not penalized for its clients. */
function penalizeRejection<T>({ connection }: Arrival, address: string, admit: () => T): T {
  try {
    return admit();
  } catch (error) {
    if (connection.remoteAddress === address) {
      connection.penalize(rejectionPenalty);
    }
    throw error;
  }
}

/** Creates a function that reports, once, requests forwarded by a local proxy that is not trusted. */
function createProxyCheck({
  trustedProxies,
  onUntrustedForwarding,
}: EdgeSettings): (arrival: Arrival, address: string) => void {
  const isLoopback = createAddressSet(["127.0.0.0/8", "::1"]);
  let isReported = trustedProxies.length > 0;
  return (arrival, address) => {
    if (isReported) {
      return;
    }
    const forwarded = arrival.header("x-forwarded-for") ?? arrival.header("forwarded");
    if (forwarded !== undefined && isLoopback(address)) {
      isReported = true;
      onUntrustedForwarding();
    }
  };
}

function oncePerSecond<T>(report: (value: T) => void): (value: T) => void {
  let nextMs = 0;
  return (value) => {
    const now = performance.now();
    if (now >= nextMs) {
      nextMs = now + 1_000;
      report(value);
    }
  };
}
