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
  readonly bounds: ConnectionLimits;
  readonly accounts: Pick<UsageTracker, "of">;
  /**
   * Trusted proxies. They connect for many callers, so the limit per address does not apply and they are never banned.
   */
  readonly isTrustedProxy: AddressSet;
  /** Addresses that are never banned. */
  readonly isExempt: AddressSet;
  readonly nowMs: () => number;
  /** Called with a banned address and its prefix. */
  readonly onShutOut: (address: string, network: string) => void;
}

/** Connection, with the state that its requests change. */
export interface HeldConnection extends Connection {
  /** Bytes reserved for its requests and responses. */
  heldBytes: number;
  /** Called when a request or stream starts. */
  hold(): void;
  /** Called when a request or stream ends. */
  release(): void;
}

export interface ConnectionLimit {
  connect(remoteAddress: string, cut: () => void): HeldConnection | undefined;
  /** Bans address prefixes that another process of this node has banned. */
  hear(shutOut: readonly string[]): void;
  readonly size: number;
}

/** Penalties that an address may collect at once, and the number that is forgiven per second. */
const strikeRate = { burst: 500, tokens: 50, everyMs: 1_000 };
/** Duration of a ban in milliseconds. Open connections of the address are closed. */
const shutOutMs = 10_000;
/** Limit on addresses with recorded penalties. */
const maxAddresses = 10_000;

export function createConnectionLimit(deps: ConnectionDeps): ConnectionLimit {
  const { bounds, accounts, isTrustedProxy, isExempt, nowMs, onShutOut } = deps;
  const all = new ConnectionSet();
  const byAddress = new Map<string, ConnectionSet>();
  const strikes = createTokenBuckets(maxAddresses);
  const shutOut = createLruCache<number>(maxAddresses);

  function placesOf(network: string): ConnectionSet {
    let places = byAddress.get(network);
    if (places === undefined) {
      places = new ConnectionSet();
      byAddress.set(network, places);
    }
    return places;
  }

  /** Removes the entry of an address without connections, even if its only connection was rejected. */
  function forgetEmpty(network: string, own: ConnectionSet): void {
    if (own.size === 0 && byAddress.get(network) === own) {
      byAddress.delete(network);
    }
  }

  function remove(place: Place): void {
    all.delete(place);
    place.own.delete(place);
  }

  function shutOutNow(network: string): void {
    shutOut.set(network, nowMs() + shutOutMs);
    byAddress.get(network)?.cutAll();
  }

  return {
    connect(remoteAddress, cut) {
      const address = normalizeAddress(remoteAddress);
      const isProxy = address === "" || isTrustedProxy(address);
      const network = addressPrefixOf(address);
      if ((shutOut.get(network) ?? 0) > nowMs()) {
        return undefined;
      }
      const own = isProxy ? new ConnectionSet() : placesOf(network);
      const account = accounts.of(network);
      const isOwnFull = !isProxy && own.size >= bounds.perAddress - account.elsewhere.connections;
      // One of the address makes room in total, too.
      const full = isOwnFull ? own : all.size >= bounds.total ? all : undefined;
      const evicted = full?.longestIdle();
      if (full !== undefined && evicted === undefined) {
        forgetEmpty(network, own);
        return undefined;
      }
      const place: Place = { own, cut, held: 0, idleSinceMs: nowMs() };
      all.add(place);
      own.add(place);
      account.connections++;
      if (evicted !== undefined) {
        // Its slots are free before its socket has closed.
        remove(evicted);
        evicted.cut();
      }
      return {
        remoteAddress: address,
        provenIdentity: undefined,
        heldBytes: 0,
        hold() {
          place.held++;
        },
        release() {
          place.held--;
          place.idleSinceMs = nowMs();
        },
        penalize(count = 1) {
          if (strikes.of(network, strikeRate).tryRemoveTokens(Math.min(count, strikeRate.burst))) {
            return;
          }
          if (isProxy || isExempt(address)) {
            cut();
          } else {
            shutOutNow(network);
            onShutOut(address, network);
          }
        },
        end() {
          account.connections--;
          remove(place);
          forgetEmpty(network, own);
        },
      };
    },
    hear: (networks) => networks.forEach(shutOutNow),
    get size() {
      return all.size;
    },
  };
}

interface Place {
  /** Connections of its address. */
  readonly own: ConnectionSet;
  readonly cut: () => void;
  /** Requests and streams in flight. */
  held: number;
  /** Time at which the last one ended, on the clock of `nowMs`. */
  idleSinceMs: number;
}

class ConnectionSet {
  private readonly places = new Set<Place>();

  get size(): number {
    return this.places.size;
  }

  /** Returns the connection that has been idle longest; undefined if all are in use. */
  longestIdle(): Place | undefined {
    let longest: Place | undefined;
    for (const place of this.places) {
      if (place.held === 0 && place.idleSinceMs < (longest?.idleSinceMs ?? Infinity)) {
        longest = place;
      }
    }
    return longest;
  }

  add(place: Place): void {
    this.places.add(place);
  }

  delete(place: Place): void {
    this.places.delete(place);
  }

  cutAll(): void {
    for (const place of [...this.places]) {
      place.cut();
    }
  }
}
