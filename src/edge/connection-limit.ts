/**
 * Limits connections, in total and per address, and bans addresses that only cause harm. If a limit is reached, the
 * connection that has been idle longest is closed to admit the new one.
 */
import { createLruCache } from "../base/caches/lru-cache.js";
import { addressPrefixOf, normalizeAddress } from "../base/ip-address.js";
import { createTokenBuckets } from "../base/limits/token-buckets.js";
import type { Connection } from "../rpc/gate.js";
import type { UsageTracker } from "./address-usage.js";
import type { AddressSet } from "./client-address.js";

export interface ConnectionLimits {
  readonly total: number;
  /** Limit per IPv4 address or IPv6 /64 prefix. */
  readonly perAddress: number;
}

export const defaultConnections: ConnectionLimits = { total: 4_000, perAddress: 256 };

export interface ConnectionDeps {
  readonly limits: ConnectionLimits;
  readonly usageTracker: UsageTracker;
  /**
   * Trusted proxies. They connect for many callers, so the limit per address does not apply and they are never banned.
   */
  readonly isTrustedProxy: AddressSet;
  /** Addresses that are never banned. */
  readonly isExempt: AddressSet;
  readonly nowMs: () => number;
  readonly onBan: (address: string, prefix: string) => void;
}

export interface TrackedConnection extends Connection {
  reservedBytes: number;
  acquire(): void;
  release(): void;
}

/** Penalties that an address may collect at once, and the number that is forgiven per second. */
const penaltyRate = { burst: 500, tokens: 50, everyMs: 1_000 };
/** Duration of a ban in milliseconds. Open connections of the address are closed. */
const banMs = 10_000;
const maxAddresses = 10_000;

interface Entry {
  /** Connections of its address. */
  readonly addressEntries: Set<Entry>;
  readonly abort: () => void;
  inFlight: number;
  /** Time at which the last one ended, on the clock of `nowMs`. */
  idleSinceMs: number;
}

export function createConnectionLimit(deps: ConnectionDeps) {
  const { limits, usageTracker, isTrustedProxy, isExempt, nowMs, onBan } = deps;
  const all = new Set<Entry>();
  const byPrefix = new Map<string, Set<Entry>>();
  const penalties = createTokenBuckets(maxAddresses);
  const bannedUntilMs = createLruCache<number>(maxAddresses);

  function ban(prefix: string): void {
    bannedUntilMs.set(prefix, nowMs() + banMs);
    [...(byPrefix.get(prefix) ?? [])].forEach((entry) => entry.abort());
  }

  function remove(entry: Entry): void {
    all.delete(entry);
    entry.addressEntries.delete(entry);
  }

  return {
    /**
     * Admits a connection; returns undefined if it is rejected.
     *
     * @param abort closes the connection immediately.
     */
    connect(remoteAddress: string, abort: () => void): TrackedConnection | undefined {
      const address = normalizeAddress(remoteAddress);
      const isProxy = address === "" || isTrustedProxy(address);
      const prefix = addressPrefixOf(address);
      if ((bannedUntilMs.get(prefix) ?? 0) > nowMs()) {
        return undefined;
      }
      const addressEntries = (isProxy ? undefined : byPrefix.get(prefix)) ?? new Set<Entry>();
      const usage = usageTracker.of(prefix);
      const isAddressFull = !isProxy && addressEntries.size >= limits.perAddress - usage.elsewhere.connections;
      let evicted: Entry | undefined;
      if (isAddressFull || all.size >= limits.total) {
        // Evicting a connection of the same address also lowers the total.
        evicted = longestIdle(isAddressFull ? addressEntries : all);
        if (evicted === undefined) {
          return undefined;
        }
      }
      const entry: Entry = { addressEntries, abort, inFlight: 0, idleSinceMs: nowMs() };
      all.add(entry);
      addressEntries.add(entry);
      if (!isProxy) {
        byPrefix.set(prefix, addressEntries);
      }
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
          if (addressEntries.size === 0 && byPrefix.get(prefix) === addressEntries) {
            byPrefix.delete(prefix);
          }
        },
      };
    },
    /** Bans address prefixes that another process of this node has banned. */
    banAll: (prefixes: readonly string[]) => prefixes.forEach(ban),
    get size() {
      return all.size;
    },
  };
}

/** Returns the connection that has been idle longest; undefined if all are in use. */
function longestIdle(entries: ReadonlySet<Entry>): Entry | undefined {
  let longest: Entry | undefined;
  for (const entry of entries) {
    if (entry.inFlight === 0 && entry.idleSinceMs < (longest?.idleSinceMs ?? Infinity)) {
      longest = entry;
    }
  }
  return longest;
}
