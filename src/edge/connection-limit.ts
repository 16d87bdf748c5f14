/**
 * Connections are bounded, in all and for an address, and those of an address that only does harm are cut. Where there
 * is no room, one on which nothing is under way makes it: the one that has been so for longest.
 */
import { createLruCache } from "../base/caches/lru-cache.js";
import { createTokenBuckets } from "../base/limits/token-buckets.js";
import type { Connection } from "../rpc/gate.js";
import type { UsageTracker } from "./address-usage.js";
import { type AddressSet, addressPrefixOf, normalizeAddress } from "./cidr.js";

/** How many connections there may be. */
export interface ConnectionLimits {
  readonly total: number;
  /** Of one address, or one /64 of IPv6. */
  readonly perAddress: number;
}

/** The bounds of a node. */
export const defaultConnections: ConnectionLimits = { total: 4_000, perAddress: 256 };

export interface ConnectionDeps {
  readonly bounds: ConnectionLimits;
  readonly accounts: Pick<UsageTracker, "of">;
  /** Connections of proxies are those of many callers: their number is not bounded, and they are never shut out. */
  readonly isTrustedProxy: AddressSet;
  /** Addresses that are never shut out. */
  readonly isExempt: AddressSet;
  readonly nowMs: () => number;
  /** Hears of an address that is shut out, and of its network. */
  readonly onShutOut: (address: string, network: string) => void;
}

/** What requests do to their connection's place. */
export interface HeldConnection extends Connection {
  /** Bytes that its requests and answers hold. */
  heldBytes: number;
  /** A request or stream begins. */
  hold(): void;
  /** It has ended. */
  release(): void;
}

export interface ConnectionLimit {
  connect(remoteAddress: string, cut: () => void): HeldConnection | undefined;
  /** Shuts out an address that another process of this node has shut out. */
  hear(shutOut: readonly string[]): void;
  readonly size: number;
}

/** How many strikes an address has at once, and how many more each second. */
const strikeRate = { burst: 500, tokens: 50, everyMs: 1_000 };
/** How long an address that used them up is shut out; its connections are cut. */
const shutOutMs = 10_000;
/** Most addresses whose strikes are remembered. */
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

  /** An address without a connection takes no room, also one whose only connection was turned away. */
  function forgetEmpty(network: string, own: ConnectionSet): void {
    if (own.size === 0 && byAddress.get(network) === own) {
      byAddress.delete(network);
    }
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
      if (
        (!isProxy && !own.makeRoom(bounds.perAddress - account.elsewhere.connections)) ||
        !all.makeRoom(bounds.total)
      ) {
        forgetEmpty(network, own);
        return undefined;
      }
      const place = { cut, held: 0, idleSinceMs: nowMs() };
      all.add(place);
      own.add(place);
      account.connections++;
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
          all.delete(place);
          own.delete(place);
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
  readonly cut: () => void;
  /** Requests and streams under way. */
  held: number;
  /** Since when there are none, if there are. */
  idleSinceMs: number;
}

class ConnectionSet {
  private readonly places = new Set<Place>();

  get size(): number {
    return this.places.size;
  }

  /** Whether there is room for one more, which the one that is idle for longest may have had to make. */
  makeRoom(most: number): boolean {
    if (this.places.size < most) {
      return true;
    }
    let longest: Place | undefined;
    for (const place of this.places) {
      if (place.held === 0 && place.idleSinceMs < (longest?.idleSinceMs ?? Infinity)) {
        longest = place;
      }
    }
    if (longest === undefined) {
      return false;
    }
    this.places.delete(longest);
    longest.cut();
    return true;
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
