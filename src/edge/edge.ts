/**
 * Admission layer: every connection, request and stream passes it first, in each protocol. It checks the address,
 * overload, the rate limit, and limits on connections, streams and unsent bytes, and writes the access log. An admitted
 * request gets a permit that is released when it ends.
 */
import { startTurns } from "../base/async/turns.js";
import { addressPrefixOf } from "../base/ip-address.js";
import { type Outcome, toRpcError } from "../rpc/errors.js";
import type { Arrival, Gate, Protocol } from "../rpc/gate.js";
import type { ServedMethod } from "../rpc/service.js";
import { type UsageByPrefix, UsageTracker } from "./address-usage.js";
import { createAddressSet, findClientAddress } from "./client-address.js";
import {
  createConcurrency,
  defaultOverload,
  defaultStreams,
  type OverloadLimits,
  type StreamLimits,
} from "./concurrency.js";
import {
  type ConnectionLimits,
  createConnectionLimit,
  defaultConnections,
  type TrackedConnection,
} from "./connection-limit.js";
import { createIdentify, type IdentitySettings } from "./identity.js";
import { minBlockOf } from "./min-block.js";
import { bytesPerRequest, type Charges, createRateLimit } from "./rate-limit.js";
import { ByteBudget, type ByteLimits, defaultBytes, type PermitDeps, RequestPermit } from "./request-permit.js";
import {
  type AccessLine,
  createRequestReporter,
  type FinishedRequest,
  isStream,
  type ReportedArrival,
} from "./request-reporter.js";

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
  readonly onFinished?: (request: FinishedRequest, arrival: ReportedArrival) => void;
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

export interface SharedUsage {
  readonly usages: UsageByPrefix;
  readonly charges: Charges;
  readonly banned: readonly string[];
}

export type Edge = ReturnType<typeof createEdge>;

export type EdgeStats = ReturnType<Edge["stats"]>;

/** Probes of an address per second, beside those that each of its connections may send. No orchestrator needs more. */
const probesPerS = 200;
const sweepEveryMs = 1_000;
const noHeaders: readonly string[] = [];

export function createEdge(settings: EdgeSettings) {
  const isTrustedProxy = createAddressSet(settings.trustedProxies);
  const identify = createIdentify(settings, Date.now);
  const isExempt = createAddressSet(settings.rateLimitExempt);
  const rateLimit = createRateLimit(settings.rateLimitPerMinute, settings.isShared);
  const probeLimit = createRateLimit(probesPerS, false, 1_000, "probes");
  const usageTracker = new UsageTracker();
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
  const bytes = new ByteBudget(settings.bytes ?? defaultBytes);
  const concurrency = createConcurrency(
    settings.overload ?? defaultOverload,
    settings.streams ?? defaultStreams,
    usageTracker,
  );
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
    acquire: (permit) => concurrency.acquire(permit, isLimited(permit)),
    release: (permit) => concurrency.release(permit),
    onEnd: ({ admitted }, code, endMs) => reportRequest(admitted, code, endMs),
  };

  function headersOf(method: ServedMethod | undefined, rateHeaders: readonly string[]): readonly string[] {
    const headers = (method && settings.headersOf?.(method)) ?? noHeaders;
    return rateHeaders.length === 0 ? headers : [...headers, ...rateHeaders];
  }

  return {
    connect: (remoteAddress: string, abort: () => void) => connections.connect(remoteAddress, abort),
    admit(arrival: Arrival, protocol: Protocol, method: ServedMethod | undefined): RequestPermit {
      const startMs = performance.now();
      const connection = arrival.connection as TrackedConnection;
      const address = findClientAddress(connection.remoteAddress, (name) => arrival.header(name), isTrustedProxy);
      checkForProxies(arrival, address);
      const admitted = { arrival, address, protocol, method, startMs };
      const isStreaming = isStream(method);
      const isProbe = method?.isProbe === true;
      const usage = usageTracker.of(addressPrefixOf(address));
      try {
        let rateHeaders = noHeaders;
        if (isStreaming || !isProbe) {
          concurrency.checkLoad();
          if (!isExempt(address)) {
            rateHeaders = rateLimit.count(address);
          }
          bytes.check(usage, connection);
        } else if (!isExempt(address) && !connection.takeProbe()) {
          probeLimit.count(address);
        }
        const minBlock = isProbe ? undefined : minBlockOf(arrival);
        const permit = new RequestPermit(admitted, headersOf(method, rateHeaders), isStreaming, usage, permitDeps);
        if (isStreaming || !arrival.isIncomplete) {
          permit.occupySlot();
        }
        arrival.onClose(() => permit.release());
        permit.ready = minBlock === undefined ? undefined : settings.untilBlock?.(minBlock);
        permit.ready = permit.ready?.then(() => void (permit.headers = headersOf(method, rateHeaders)));
        if (isStreaming) {
          const turn = startTurns.turn(connection.flow);
          permit.ready = permit.ready?.then(() => turn) ?? turn;
        }
        return permit;
      } catch (error) {
        // A proxy is not responsible for its clients.
        if (connection.remoteAddress === address) {
          connection.countRejection();
        }
        reportRequest(admitted, toRpcError(error).reason, performance.now());
        throw error;
      }
    },
    record(arrival: ReportedArrival, outcome: Outcome): void {
      const startMs = performance.now();
      const { remoteAddress } = arrival.connection;
      const address = findClientAddress(remoteAddress, (name) => arrival.header(name), isTrustedProxy);
      reportRequest({ arrival, address, protocol: "http", method: undefined, startMs }, outcome, startMs);
    },
    /** Returns statistics of the rate limiter and values for the metrics. */
    stats: () => ({
      ...rateLimit.counts(),
      ...concurrency.counts(),
      openConnections: connections.size,
      unansweredRequests: connections.unanswered,
      /** Bytes reserved for requests and for responses that wait to be sent. */
      reservedBytes: bytes.reservedBytes,
    }),
    /** Returns the limit in total at which requests were rejected in the last 10 s; undefined if none were. */
    overload: () => concurrency.overload(),
    /** Returns the usage in this process since the last call. */
    drainUsage(): SharedUsage {
      const usage = { usages: usageTracker.drainChanged(), charges: rateLimit.drainCharges(), banned };
      banned = [];
      return usage;
    },
    /** Receives usage from other processes of this node, because limits apply to all of them together. */
    receiveUsage(usage: SharedUsage) {
      usageTracker.receive(usage.usages);
      rateLimit.receive(usage.charges);
      connections.banAll(usage.banned);
    },
    stop() {
      concurrency.stop();
      clearInterval(sweeper);
    },
  } satisfies Gate & Record<string, unknown>;
}

/** Returns true if limits in total apply to a request: to all but single probes. */
function isLimited({ isStream: isStreaming, method }: RequestPermit): boolean {
  return isStreaming || method?.isProbe !== true;
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
