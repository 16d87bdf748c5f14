/**
 * Limits connections, in total and per address, and bans addresses that only cause harm. If a limit is reached, the
 * connection that has been idle longest is closed to admit the new one.
 */
import { createLruCache } from "../base/caches/lru-cache.js";
import { createTokenBuckets } from "../base/limits/token-buckets.js";
import type { Connection } from "../rpc/gate.js";
import type { UsageTracker } from "./address-usage.js";
import { addressPrefixOf, normalizeAddress } from "../base/ip-address.js";
import type { AddressSet } from "./cidr.js";

export interface ConnectionLimits {
  readonly total: number;
  /** Limit per IPv4 address or IPv6 /64 prefix. */
  readonly perAddress: number;
}

export const defaultConnections: ConnectionLimits = { total: 4_000, perAddress: 256 };

export interface ConnectionDeps {
  readonly limits: ConnectionLimits;
  readonly usageTracker: Pick<UsageTracker, "of">;
  /**
   * Trusted proxies. They connect for many callers, so the limit per address does not apply and they are never banned.
   */
  readonly isTrustedProxy: AddressSet;
  /** Addresses that are never banned. */
  readonly isExempt: AddressSet;
  readonly nowMs: () => number;
  /** Called with a banned address and its prefix. */
  readonly onBan: (address: string, prefix: string) => void;
}

/** Connection, with the state that its requests change. */
export interface TrackedConnection extends Connection {
  /** Bytes reserved for its requests and responses. */
  reservedBytes: number;
  /** Called when a request or stream starts. */
  acquire(): void;
  /** Called when a request or stream ends. */
  release(): void;
}

export interface ConnectionLimit {
  connect(remoteAddress: string, abort: () => void): TrackedConnection | undefined;
  /** Bans address prefixes that another process of this node has banned. */
  banAll(prefixes: readonly string[]): void;
  readonly size: number;
}

/** Penalties that an address may collect at once, and the number that is forgiven per second. */
const penaltyRate = { burst: 500, tokens: 50, everyMs: 1_000 };
/** Duration of a ban in milliseconds. Open connections of the address are closed. */
const banMs = 10_000;
/** Limit on addresses with recorded penalties. */
const maxAddresses = 10_000;

export function createConnectionLimit(deps: ConnectionDeps): ConnectionLimit {
  const { limits, usageTracker, isTrustedProxy, isExempt, nowMs, onBan } = deps;
  const all = new ConnectionSet();
  const byAddress = new Map<string, ConnectionSet>();
  const penalties = createTokenBuckets(maxAddresses);
  const bannedUntilMs = createLruCache<number>(maxAddresses);

  function connectionsOf(prefix: string): ConnectionSet {
    let connections = byAddress.get(prefix);
    if (connections === undefined) {
      connections = new ConnectionSet();
      byAddress.set(prefix, connections);
    }
    return connections;
  }

  /** Removes the entry of an address without connections, even if its only connection was rejected. */
  function deleteEmpty(prefix: string, addressConnections: ConnectionSet): void {
    if (addressConnections.size === 0 && byAddress.get(prefix) === addressConnections) {
      byAddress.delete(prefix);
    }
  }

  function remove(entry: ConnectionEntry): void {
    all.delete(entry);
    entry.addressConnections.delete(entry);
  }

  function ban(prefix: string): void {
    bannedUntilMs.set(prefix, nowMs() + banMs);
    byAddress.get(prefix)?.abortAll();
  }

  return {
    connect(remoteAddress, abort) {
      const address = normalizeAddress(remoteAddress);
      const isProxy = address === "" || isTrustedProxy(address);
      const prefix = addressPrefixOf(address);
      if ((bannedUntilMs.get(prefix) ?? 0) > nowMs()) {
        return undefined;
      }
      const addressConnections = isProxy ? new ConnectionSet() : connectionsOf(prefix);
      const usage = usageTracker.of(prefix);
      const isAddressFull = !isProxy && addressConnections.size >= limits.perAddress - usage.elsewhere.connections;
      // Evicting a connection of the same address also lowers the total.
      const fullSet = isAddressFull ? addressConnections : all.size >= limits.total ? all : undefined;
      const evicted = fullSet?.longestIdle();
      if (fullSet !== undefined && evicted === undefined) {
        deleteEmpty(prefix, addressConnections);
        return undefined;
      }
      const entry: ConnectionEntry = { addressConnections, abort, inFlight: 0, idleSinceMs: nowMs() };
      all.add(entry);
      addressConnections.add(entry);
      usage.connections++;
      if (evicted !== undefined) {
        // Its slots are free before its socket has closed.
        remove(evicted);
        evicted.abort();
      }
      return {
        remoteAddress: address,
        provenIdentity: undefined,
        reservedBytes: 0,
        acquire() {
          entry.inFlight++;
        },
        release() {
          entry.inFlight--;
          entry.idleSinceMs = nowMs();
        },
        penalize(count = 1) {
          if (penalties.of(prefix, penaltyRate).tryRemoveTokens(Math.min(count, penaltyRate.burst))) {
            return;
          }
          if (isProxy || isExempt(address)) {
            abort();
          } else {
            ban(prefix);
            onBan(address, prefix);
          }
        },
        end() {
          usage.connections--;
          remove(entry);
          deleteEmpty(prefix, addressConnections);
        },
      };
    },
    banAll: (prefixes) => prefixes.forEach(ban),
    get size() {
      return all.size;
    },
  };
}

interface ConnectionEntry {
  /** Connections of its address. */
  readonly addressConnections: ConnectionSet;
  readonly abort: () => void;
  /** Requests and streams in flight. */
  inFlight: number;
  /** Time at which the last one ended, on the clock of `nowMs`. */
  idleSinceMs: number;
}

class ConnectionSet {
  private readonly entries = new Set<ConnectionEntry>();

  get size(): number {
    return this.entries.size;
  }

  /** Returns the connection that has been idle longest; undefined if all are in use. */
  longestIdle(): ConnectionEntry | undefined {
    let longest: ConnectionEntry | undefined;
    for (const entry of this.entries) {
      if (entry.inFlight === 0 && entry.idleSinceMs < (longest?.idleSinceMs ?? Infinity)) {
        longest = entry;
      }
    }
    return longest;
  }

  add(entry: ConnectionEntry): void {
    this.entries.add(entry);
  }

  delete(entry: ConnectionEntry): void {
    this.entries.delete(entry);
  }

  abortAll(): void {
    for (const entry of [...this.entries]) {
      entry.abort();
    }
  }
}
