/**
 * Limits connections and what waits on them, in total and per address, and bans addresses that only cause harm. At a
 * limit, the one that uses most gives way: the connection that has been idle longest, or that has most unanswered
 * requests.
 */
import { TokenBucket } from "limiter";
import { Flow } from "../base/async/fair-scheduler.js";
import { createLruCache } from "../base/caches/lru-cache.js";
import { addressPrefixOf, normalizeAddress } from "../base/ip-address.js";
import { createTokenBuckets } from "../base/limits/token-buckets.js";
import type { Connection } from "../rpc/gate.js";
import type { AddressUsage, UsageTracker } from "./address-usage.js";
import type { AddressSet } from "./client-address.js";

/**
 * Limits on the backlog: requests that have arrived and are unanswered, admitted or not, and bytes that wait to be
 * parsed.
 */
export interface BacklogLimits {
  readonly totalBytes: number;
  /** Limit per IPv4 address or IPv6 /64 prefix. */
  readonly perAddressBytes: number;
}

export interface ConnectionLimits {
  readonly total: number;
  /** Limit per IPv4 address or IPv6 /64 prefix. */
  readonly perAddress: number;
  readonly backlog: BacklogLimits;
}

/** Memory of an unanswered request, in bytes, as counted for the backlog. */
const requestBytes = 8 * 1024;

/** 6,144 requests, more than all streams and requests in flight, and 2,048 of an address: 8 on each connection. */
export const defaultBacklog: BacklogLimits = {
  totalBytes: 6_144 * requestBytes,
  perAddressBytes: 2_048 * requestBytes,
};

export const defaultConnections: ConnectionLimits = { total: 4_000, perAddress: 256, backlog: defaultBacklog };

export interface ConnectionDeps {
  readonly limits: ConnectionLimits;
  readonly usageTracker: UsageTracker;
  /**
   * Trusted proxies. They connect for many callers, so the limits per address apply to each of their connections, and
   * they are never banned.
   */
  readonly isTrustedProxy: AddressSet;
  /** Addresses that are never banned. */
  readonly isExempt: AddressSet;
  readonly nowMs: () => number;
  readonly onBan: (address: string, prefix: string) => void;
}

export interface TrackedConnection extends Connection {
  reservedBytes: number;
  /** Counts a complete request or a stream in flight: a connection without one is idle. */
  acquire(): void;
  release(): void;
  /** Takes one of the probes that a connection may send beside those of its address; false if it has none left. */
  takeProbe(): boolean;
  /** Counts a rejected request. A connection that goes on for long is closed; others of its address are not. */
  countRejection(): void;
}

/** Penalties that an address may collect at once, and the number that is forgiven per second. */
const penaltyRate = { burst: 500, tokens: 50, everyMs: 1_000 };
/** Probes that a connection may send at once, and per second: an orchestrator is served beside a flood. */
const probeRate = { bucketSize: 10, tokensPerInterval: 2, interval: 1_000 };
/** Rejections that a connection may collect at once, and per second. Its client ignores Retry-After. */
const rejectionRate = { bucketSize: 500, tokensPerInterval: 50, interval: 1_000 };
/** Concurrent streams of a connection: of the only one of an address, and of one of very many. */
const streamRange = { highest: 256, lowest: 2 };
/** Duration of a ban in milliseconds. */
const banMs = 10_000;
const maxAddresses = 10_000;

/** Connections of an address, or one connection of a proxy. */
interface Group {
  readonly prefix: string;
  readonly flow: Flow;
  readonly entries: Set<Entry>;
  readonly usage: AddressUsage;
  readonly isProxy: boolean;
  backlogBytes: number;
}

export function createConnectionLimit(deps: ConnectionDeps) {
  const { limits, usageTracker, isTrustedProxy, isExempt, nowMs, onBan } = deps;
  const all = new Set<Entry>();
  const groups = new Map<string, Group>();
  const penalties = createTokenBuckets(maxAddresses);
  const bannedUntilMs = createLruCache<number>(maxAddresses);
  let backlogBytes = 0;
  let unanswered = 0;

  const isBanned = (prefix: string): boolean => (bannedUntilMs.get(prefix) ?? 0) > nowMs();

  /**
   * Bans an address: closes its connections that have penalties, and later each other one at its first. Honest clients
   * of the address go on, whatever connections an attacker beside them opens.
   */
  function ban(prefix: string): void {
    bannedUntilMs.set(prefix, nowMs() + banMs);
    [...(groups.get(prefix)?.entries ?? [])].filter(({ isPenalized }) => isPenalized).forEach(abort);
  }

  /** Frees the slots of a connection. Its socket may close later. */
  function remove(entry: Entry): void {
    if (!entry.isGone) {
      entry.isGone = true;
      all.delete(entry);
      entry.group.entries.delete(entry);
      entry.group.backlogBytes -= entry.backlogBytes;
      backlogBytes -= entry.backlogBytes;
      unanswered -= entry.unanswered;
    }
  }

  function abort(entry: Entry): void {
    if (!entry.isGone) {
      remove(entry);
      entry.close();
    }
  }

  /** Adds requests and bytes to the backlog. While a limit is exceeded, the connection that has most gives way. */
  function addBacklog(entry: Entry, requests: number, bytes: number): void {
    const { group } = entry;
    entry.unanswered += requests;
    unanswered += requests;
    entry.backlogBytes += bytes;
    group.backlogBytes += bytes;
    backlogBytes += bytes;
    while (group.backlogBytes > limits.backlog.perAddressBytes) {
      abort(maxBy(group.entries, backlogOf)!);
    }
    while (backlogBytes > limits.backlog.totalBytes) {
      abort(maxBy(maxBy(all, backlogOfGroup)!.group.entries, backlogOf)!);
    }
  }

  function penalize(entry: Entry, count: number): void {
    const { prefix, isProxy } = entry.group;
    entry.isPenalized = true;
    const isTolerated = penalties.of(prefix, penaltyRate).tryRemoveTokens(Math.min(count, penaltyRate.burst));
    if (isProxy || isExempt(entry.remoteAddress)) {
      if (!isTolerated) {
        abort(entry);
      }
    } else if (!isTolerated) {
      ban(prefix);
      onBan(entry.remoteAddress, prefix);
    } else if (isBanned(prefix)) {
      abort(entry);
    }
  }

  function groupOf(address: string, prefix: string): Group {
    const isProxy = address === "" || isTrustedProxy(address);
    const known = isProxy ? undefined : groups.get(prefix);
    return (
      known ?? {
        prefix,
        flow: new Flow(),
        entries: new Set(),
        usage: usageTracker.of(prefix),
        isProxy,
        backlogBytes: 0,
      }
    );
  }

  /**
   * Returns the streams that a new connection may have open: so few that those of all connections of its address fit
   * into the backlog twice. If they did not, an address with many connections would lose one for every few streams, and
   * its streams would use time and memory without ever getting a response.
   */
  function maxStreamsOf({ entries, usage }: Group): number {
    const connections = entries.size + usage.elsewhere.connections + 1;
    const share = Math.floor(limits.backlog.perAddressBytes / requestBytes / 2 / connections);
    return Math.min(streamRange.highest, Math.max(streamRange.lowest, share));
  }

  /** Returns the connection that gives way to a new one; undefined if all are in use. */
  function findEvictable(entries: ReadonlySet<Entry>): Entry | undefined {
    const idle = maxBy(entries, (entry) => (entry.inFlight === 0 ? -entry.idleSinceMs : -Infinity));
    if (idle?.inFlight === 0) {
      return idle;
    }
    const busiest = maxBy(entries, backlogOf);
    return busiest !== undefined && busiest.unanswered > 1 ? busiest : undefined;
  }

  const limiter: Limiter = {
    nowMs,
    abort,
    addBacklog,
    penalize,
    end(entry) {
      const { group } = entry;
      group.usage.connections--;
      remove(entry);
      if (group.entries.size === 0 && groups.get(group.prefix) === group) {
        groups.delete(group.prefix);
      }
    },
  };

  return {
    /**
     * Admits a connection; returns undefined if it is rejected.
     *
     * @param close closes the connection immediately.
     */
    connect(remoteAddress: string, close: () => void): TrackedConnection | undefined {
      const address = normalizeAddress(remoteAddress);
      const prefix = addressPrefixOf(address);
      const group = groupOf(address, prefix);
      const isAddressFull =
        !group.isProxy && group.entries.size >= limits.perAddress - group.usage.elsewhere.connections;
      if (isAddressFull || all.size >= limits.total) {
        // Evicting a connection of the same address also lowers the total.
        const evicted = findEvictable(isAddressFull ? group.entries : all);
        if (evicted === undefined) {
          return undefined;
        }
        abort(evicted);
      }
      const entry = new Entry(address, group, maxStreamsOf(group), close, limiter);
      all.add(entry);
      group.entries.add(entry);
      if (!group.isProxy) {
        groups.set(prefix, group);
      }
      group.usage.connections++;
      return entry;
    },
    /** Bans address prefixes that another process of this node has banned. */
    banAll: (prefixes: readonly string[]) => prefixes.forEach(ban),
    /** Number of open connections, without those that give way. */
    get size() {
      return all.size;
    },
    /** Requests that have arrived on them and are unanswered, admitted or not. */
    get unanswered() {
      return unanswered;
    },
  };
}

/** Functions of the limit that a connection calls. */
interface Limiter {
  readonly nowMs: () => number;
  abort(entry: Entry): void;
  addBacklog(entry: Entry, requests: number, bytes: number): void;
  penalize(entry: Entry, count: number): void;
  end(entry: Entry): void;
}

class Entry implements TrackedConnection {
  readonly flow: Flow;
  provenIdentity: string | undefined = undefined;
  reservedBytes = 0;
  unanswered = 0;
  backlogBytes = 0;
  inFlight = 0;
  /** Time at which the last request in flight ended, on the clock of `nowMs`. */
  idleSinceMs: number;
  isPenalized = false;
  private probes: TokenBucket | undefined;
  private rejections: TokenBucket | undefined;
  /** True once the connection counts no more, because it has ended or gives way. */
  isGone = false;

  constructor(
    readonly remoteAddress: string,
    readonly group: Group,
    readonly maxStreams: number,
    readonly close: () => void,
    private readonly limiter: Limiter,
  ) {
    this.flow = new Flow(group.flow);
    this.idleSinceMs = limiter.nowMs();
  }

  arrive(): boolean {
    this.addBacklog(1, requestBytes);
    return !this.isGone;
  }

  leave(): void {
    this.addBacklog(-1, -requestBytes);
  }

  wait(bytes: number): void {
    this.addBacklog(0, bytes);
  }

  private addBacklog(requests: number, bytes: number): void {
    if (!this.isGone) {
      this.limiter.addBacklog(this, requests, bytes);
    }
  }

  acquire(): void {
    this.inFlight++;
  }

  release(): void {
    this.inFlight--;
    this.idleSinceMs = this.limiter.nowMs();
  }

  takeProbe(): boolean {
    return (this.probes ??= fullBucket(probeRate)).tryRemoveTokens(1);
  }

  countRejection(): void {
    if (!(this.rejections ??= fullBucket(rejectionRate)).tryRemoveTokens(1)) {
      this.limiter.abort(this);
    }
  }

  penalize(count = 1): void {
    // What a connection leaves behind that gave way is no abuse.
    if (!this.isGone) {
      this.limiter.penalize(this, count);
    }
  }

  end(): void {
    this.limiter.end(this);
  }
}

function fullBucket(rate: ConstructorParameters<typeof TokenBucket>[0]): TokenBucket {
  const bucket = new TokenBucket(rate);
  bucket.content = bucket.bucketSize;
  return bucket;
}

const backlogOf = (entry: Entry): number => entry.backlogBytes;
const backlogOfGroup = ({ group }: Entry): number => group.backlogBytes;

function maxBy(entries: Iterable<Entry>, valueOf: (entry: Entry) => number): Entry | undefined {
  let max: Entry | undefined;
  for (const entry of entries) {
    if (max === undefined || valueOf(entry) > valueOf(max)) {
      max = entry;
    }
  }
  return max;
}
