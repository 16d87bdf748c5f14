/** What every request meets first, whatever protocol brings it: address, identity, overload, rate limit, access log. */
import { type Failure, toFailure } from "../rpc/errors.js";
import type { Arrival, Gate } from "../rpc/gate.js";
import type { ServedMethod } from "../rpc/service.js";
import { type AccessLine, createAccessLog } from "./access-log.js";
import { createAddressSet } from "./cidr.js";
import { createClientAddress } from "./client-address.js";
import { createIdentify, type IdentityMode } from "./identity.js";
import { createOverload, defaultOverload, type OverloadBounds } from "./overload.js";
import { createRateLimit, type RateLimitCounts } from "./rate-limit.js";

export interface EdgeSettings {
  /** CIDR ranges of proxies whose forwarding headers are believed. */
  readonly trustedProxies: readonly string[];
  readonly identityMode: IdentityMode;
  /** Requests a minute for an address; 0 for no limit. */
  readonly rateLimitPerMinute: number;
  /** CIDR ranges that are not counted. */
  readonly rateLimitExempt: readonly string[];
  /** When new work is refused; the defaults when left out. */
  readonly overload?: OverloadBounds;
  readonly onSettled?: (request: Omit<AccessLine, "address">, arrival: Arrival) => void;
  /** Takes a line for an answered request, up to {@link accessLinesPerSecond}. */
  readonly onAccess: (line: AccessLine) => void;
  /** Hears, once, that requests are forwarded by a local proxy that is not trusted. */
  readonly onUntrustedForwarding: () => void;
}

export type EdgeStats = RateLimitCounts & {
  /** Requests under way. */
  readonly activeRequests: number;
};

export interface Edge extends Gate {
  /** Counts for the rate limiter's statistics. */
  stats(): EdgeStats;
  /** Ends what the edge does by itself. */
  stop(): void;
}

/** Most lines of the access log in a second. */
const accessLinesPerSecond = 20;
const noHeaders: readonly string[] = [];

export function createEdge(settings: EdgeSettings): Edge {
  const clientAddress = createClientAddress(createAddressSet(settings.trustedProxies));
  const identify = createIdentify(settings.identityMode, Date.now);
  const isExempt = createAddressSet(settings.rateLimitExempt);
  const isLoopback = createAddressSet(["127.0.0.0/8", "::1"]);
  const rateLimit = createRateLimit(settings.rateLimitPerMinute);
  const overload = createOverload(settings.overload ?? defaultOverload);
  const logAccess = createAccessLog(settings.onAccess, accessLinesPerSecond, Date.now);
  let activeRequests = 0;
  let warned = settings.trustedProxies.length > 0;

  function warnOfUntrustedForwarding(arrival: Arrival, address: string): void {
    const forwarded = arrival.header("x-forwarded-for") ?? arrival.header("forwarded");
    if (forwarded !== undefined && isLoopback(address)) {
      warned = true;
      settings.onUntrustedForwarding();
    }
  }

  function logLine(arrival: Arrival, address: string, startMs: number, failure: Failure | undefined): void {
    const describe = (): Omit<AccessLine, "address"> => ({
      requestId: arrival.requestId,
      protocol: arrival.protocol,
      rpc: arrival.method && rpcName(arrival.method),
      code: failure?.reason ?? "OK",
      latencyMs: Math.round((performance.now() - startMs) * 1000) / 1000,
    });
    settings.onSettled?.(describe(), arrival);
    logAccess(() => ({ ...describe(), address }));
  }

  return {
    admit(arrival) {
      const startMs = performance.now();
      const address = clientAddress(arrival.remoteAddress, (name) => arrival.header(name));
      if (!warned) {
        warnOfUntrustedForwarding(arrival, address);
      }
      try {
        let headers = noHeaders;
        if (arrival.method?.isProbe !== true) {
          overload.check(activeRequests);
          if (!isExempt(address)) {
            headers = rateLimit.count(address);
          }
        }
        const identity = arrival.provenIdentity ?? identify((name) => arrival.header(name));
        activeRequests++;
        return { arrival, startMs, caller: { address, identity }, headers };
      } catch (error) {
        logLine(arrival, address, startMs, toFailure(error));
        throw error;
      }
    },
    settle(admission, failure) {
      activeRequests--;
      logLine(admission.arrival, admission.caller.address, admission.startMs, failure);
    },
    stats: () => ({ ...rateLimit.counts(), activeRequests }),
    stop: () => overload.stop(),
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
