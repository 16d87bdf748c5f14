/** What every request meets first, whatever protocol brings it: its address is found and counted. */
import { getOption } from "@bufbuild/protobuf";
import type { DescMethod } from "@bufbuild/protobuf";
import { probe } from "../../gen/gatehouse/annotations/v1/annotations_pb.js";
import type { Arrival, Gate } from "../rpc/gate.js";
import { createAddressSet } from "./cidr.js";
import { createClientAddress } from "./client-address.js";
import { createRateLimit, type RateLimitCounts } from "./rate-limit.js";

/** Settings of the edge. */
export interface EdgeSettings {
  /** CIDR ranges of proxies whose forwarding headers are believed. */
  readonly trustedProxies: readonly string[];
  /** Requests a minute for an address; 0 for no limit. */
  readonly rateLimitPerMinute: number;
  /** CIDR ranges that are not counted. */
  readonly rateLimitExempt: readonly string[];
  /** Hears, once, that requests are forwarded by a local proxy that is not trusted. */
  readonly onUntrustedForwarding: () => void;
}

/** The edge of a node. */
export interface Edge extends Gate {
  /** Counts for the rate limiter's statistics. */
  stats(): RateLimitCounts & { readonly activeRequests: number };
}

/** Builds the edge. */
export function createEdge(settings: EdgeSettings): Edge {
  const clientAddress = createClientAddress(createAddressSet(settings.trustedProxies));
  const isExempt = createAddressSet(settings.rateLimitExempt);
  const isLoopback = createAddressSet(["127.0.0.0/8", "::1"]);
  const rateLimit = createRateLimit(settings.rateLimitPerMinute);
  const probes = new WeakMap<DescMethod, boolean>();
  let activeRequests = 0;
  let warned = false;

  function isProbe(method: DescMethod): boolean {
    let known = probes.get(method);
    if (known === undefined) {
      known = getOption(method, probe);
      probes.set(method, known);
    }
    return known;
  }

  function warnOfUntrustedForwarding(arrival: Arrival, address: string): void {
    const forwarded = arrival.header("x-forwarded-for") ?? arrival.header("forwarded");
    if (forwarded !== undefined && isLoopback(address)) {
      warned = true;
      settings.onUntrustedForwarding();
    }
  }

  return {
    admit(arrival) {
      activeRequests++;
      const address = clientAddress(arrival.remoteAddress, (name) => arrival.header(name));
      if (!warned && settings.trustedProxies.length === 0) {
        warnOfUntrustedForwarding(arrival, address);
      }
      if (!(arrival.method && isProbe(arrival.method)) && !isExempt(address)) {
        rateLimit.count(address);
      }
      return { address, identity: undefined };
    },
    settle() {
      activeRequests--;
    },
    stats: () => ({ ...rateLimit.counts(), activeRequests }),
  };
}
