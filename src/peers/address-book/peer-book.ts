/**
 * Address book: every peer that the node knows, and the latest information about each. Statements about a peer by
 * others are gossip until the peer proves its identity at the address where this node dialed it.
 */
import { makeImmutable } from "../../base/caches/immutable.js";
import { type BookChanges, createBookEntries } from "./book-entries.js";
import {
  type BookEntry,
  entryOf,
  isFromOperator,
  isUnverified,
  isUnverifiedGossip,
  type NewPeer,
  type Peer,
  type PeerOrigin,
  peerMessage,
  whyUnused,
} from "./peer.js";
import { peerReasons } from "./peer-reasons.js";
import type { ProvenPeer, VerifiedStatus } from "./status.js";

/** Limit on verified peers and peers from handshakes, except those that the operator named. */
const maxVerifiedOrHandshake = 1_000;
/** Limit on unverified peers from handshakes. A stranger can name any number of endpoints. */
const maxUnverified = 64;
/** Limit on unverified peers from gossip. */
const maxGossip = 1_000;
/** Time in milliseconds after which a verified peer without a response may be evicted. */
const unresponsiveAfterMs = 24 * 3_600_000;

/** Limit on the unverified peers that are dialed in one tick. */
const maxUnverifiedAtOnce = 8;
/** Number of failed calls after which an unverified peer is dropped. */
const maxUnverifiedFailures = 4;
/** Time in milliseconds after which a rejected unverified peer is dropped. */
const dropRejectedAfterMs = 3_600_000;
/** Limit on the time between two dials of a peer that fails. */
const maxPauseMs = 60_000;

const firstPenaltyMs = 60_000;
const maxPenaltyMs = 3_600_000;
/** Time in milliseconds for which a peer that sent no blocks is not used. */
const pausedMs = 10_000;
/** Number of peers whose reasons are listed. */
const maxReasons = 2;

export type PeerBook = ReturnType<typeof createPeerBook>;

/**
 * Creates an address book from the stored peers.
 *
 * @param intervalMs time between two polls of a peer that responds.
 */
export function createPeerBook({
  ownIdentity,
  stored,
  intervalMs,
  nowMs,
  onRejection = () => undefined,
}: {
  readonly ownIdentity: string;
  readonly stored: readonly NewPeer[];
  readonly intervalMs: number;
  readonly nowMs: () => number;
  /** Called with each rejection of a peer. */
  readonly onRejection?: (peer: BookEntry, reason: string) => void;
}) {
  const entries = createBookEntries(stored);
  let cachedList: { readonly peers: readonly Peer[]; readonly revision: number } | undefined;
  let cachedHealthy: ReturnType<typeof findHealthy> | undefined;

  /** Evicts the oldest evictable entry of a group if the limit is reached. Returns false if no entry may be evicted. */
  function evict(
    limit: number,
    isInGroup: (entry: BookEntry) => boolean,
    isEvictable: (entry: BookEntry) => boolean,
  ): boolean {
    const group = entries.all().filter(isInGroup);
    if (group.length < limit) {
      return true;
    }
    const oldest = group.find(isEvictable);
    return oldest !== undefined && entries.remove(oldest.endpoint);
  }

  /** Evicts an entry if a limit is reached. Returns false if there is no capacity for another peer of this origin. */
  function evictFor(origin: PeerOrigin): boolean {
    switch (origin) {
      case "file":
      case "operator":
        return true;
      case "gossip":
        return evict(maxGossip, isUnverifiedGossip, ({ failures, message }) => failures > 0 || message !== undefined);
      case "handshake":
        return (
          evict(
            maxUnverified,
            (entry) => isUnverified(entry) && !isUnverifiedGossip(entry),
            () => true,
          ) &&
          evict(
            maxVerifiedOrHandshake,
            (entry) => !isFromOperator(entry) && !isUnverifiedGossip(entry),
            ({ lastSeenMs = 0 }) => nowMs() - lastSeenMs > unresponsiveAfterMs,
          )
        );
    }
  }

  /** Changes an entry. Does nothing if the endpoint is unknown. */
  function change(endpoint: string, getChanges: (entry: BookEntry, now: number) => Partial<BookEntry>): void {
    const entry = entries.get(endpoint);
    if (entry !== undefined) {
      entries.put({ ...entry, ...getChanges(entry, nowMs()) });
    }
  }

  /** Pauses after consecutive failures: for one interval, then two, four, up to 1 min. */
  function failedFields({ failures }: BookEntry, now: number, failure?: string): Partial<BookEntry> {
    const pauseMs = Math.min(maxPauseMs, intervalMs * 2 ** Math.min(failures, 20));
    // Random jitter of up to half the pause, so that peers that failed together are not all dialed together.
    const nextTryMs = now + pauseMs * (0.5 + Math.random() / 2);
    return { failures: failures + 1, failure, nextTryMs, online: false, accepting: false, handshaken: false };
  }

  const respondedFields = (status: VerifiedStatus, entry: BookEntry, now: number): Partial<BookEntry> => ({
    ...status,
    ...{ online: true, lastSeenMs: now, failures: 0, failure: undefined, nextTryMs: 0 },
    // The next attempt, in the same tick, may fail as the last one did.
    message: entry.penalizedUntilMs + intervalMs > now ? entry.message : undefined,
  });

  /** Records a response that must not be trusted. The peer is no longer verified. */
  function recordRejection(endpoint: string, message: string): void {
    change(endpoint, (entry, now) => {
      onRejection(entry, message);
      return { ...failedFields(entry, now), verifiedMs: undefined, message, lastDialedMs: now };
    });
  }

  /** Records why this node sends no blocks to the verified peer with this identity; undefined if it may follow. */
  function recordRefusal(identity: string, refusal: string | undefined): void {
    const holder = entries.holderOf(identity);
    if (holder !== undefined && holder.refusal !== refusal) {
      entries.put({ ...holder, refusal });
    }
  }

  /** Returns an error message if another peer that is online holds the identity; otherwise undefined. */
  function findIdentityConflict(identity: string, endpoint: string): string | undefined {
    const holder = entries.holderOf(identity);
    const isElsewhere = holder !== undefined && holder.endpoint !== endpoint && holder.announced !== endpoint;
    return isElsewhere && holder.online ? peerReasons.heldIdentity(holder.endpoint) : undefined;
  }

  /** Returns an error message if the proof of a peer does not match its entry; otherwise undefined. */
  function findRejectionReason(entry: BookEntry, { identity, announced }: ProvenPeer): string | undefined {
    if (identity === ownIdentity) {
      return peerReasons.ownAddress();
    }
    if (entry.expectedIdentity !== undefined && entry.expectedIdentity !== identity) {
      return peerReasons.unexpectedKey(entry.endpoint, identity, entry.expectedIdentity, entry.origin === "file");
    }
    if (announced !== entry.endpoint && !isFromOperator(entry)) {
      return peerReasons.otherAddress(announced);
    }
    return findIdentityConflict(identity, entry.endpoint);
  }

  /** Removes an identity from any other endpoint that holds it. */
  function releaseIdentity(identity: string, endpoint: string): void {
    const holder = entries.holderOf(identity);
    if (holder === undefined || holder.endpoint === endpoint) {
      return;
    }
    if (isFromOperator(holder)) {
      const message = peerReasons.movedIdentity(endpoint);
      entries.put({ ...holder, verifiedMs: undefined, handshaken: false, message });
    } else {
      entries.remove(holder.endpoint);
    }
  }

  /**
   * Returns true if a peer is due. Times beyond the longest possible pause were set before the clock was set back, so
   * they are ignored.
   */
  function isDue({ nextTryMs, lastDialedMs }: BookEntry, now: number): boolean {
    const isPauseOver = nextTryMs <= now || nextTryMs > now + maxPauseMs;
    return isPauseOver && (now - lastDialedMs >= intervalMs / 2 || lastDialedMs > now);
  }

  function mustDrop(entry: BookEntry): boolean {
    const wasRejectedLongAgo = entry.message !== undefined && nowMs() - entry.lastDialedMs > dropRejectedAfterMs;
    return isUnverified(entry) && (entry.failures >= maxUnverifiedFailures || wasRejectedLongAgo);
  }

  /** Returns the verified peers that are online and not penalized, and until when this is known. */
  function findHealthy() {
    const now = nowMs();
    // A time beyond the longest penalty was set before the clock was set back, so it is ignored.
    const isPenalized = ({ penalizedUntilMs: untilMs }: BookEntry): boolean =>
      untilMs > now && untilMs <= now + maxPenaltyMs;
    const all = entries.all();
    const peers = all.filter((entry) => entry.online && entry.handshaken && !isPenalized(entry));
    return {
      peers,
      highestBlock: peers.map(({ head }) => head?.number).reduce(higher, undefined),
      revision: entries.revision(),
      untilMs: Math.min(...all.filter(isPenalized).map(({ penalizedUntilMs }) => penalizedUntilMs)),
    };
  }

  /** Returns the cached healthy peers, until an entry changes or a penalty ends: every health check needs them. */
  function healthy() {
    if (cachedHealthy?.revision !== entries.revision() || cachedHealthy.untilMs <= nowMs()) {
      cachedHealthy = findHealthy();
    }
    return cachedHealthy;
  }

  return {
    /**
     * Returns the peers that API responses show. Unverified gossip is hidden until a handshake with the peer is rejected.
     * Returns the same list until an entry changes.
     */
    list(): readonly Peer[] {
      if (cachedList?.revision !== entries.revision()) {
        const listed = entries.all().filter((entry) => !isUnverifiedGossip(entry) || entry.message !== undefined);
        cachedList = { peers: makeImmutable(listed.map(peerMessage)), revision: entries.revision() };
      }
      return cachedList.peers;
    },
    entries: (): readonly BookEntry[] => entries.all(),
    get: (endpoint: string) => entries.get(endpoint),
    /** Returns true if all known peers are unverified and none was named by the operator. */
    isEmpty: () => entries.all().every(isUnverified),

    /** Adds a peer, or updates its origin. Returns false if the book has no capacity for the peer. */
    add(endpoint: string, origin: PeerOrigin, expectedIdentity?: string): boolean {
      if (expectedIdentity !== undefined) {
        recordRefusal(expectedIdentity, undefined);
      }
      const known = entries.get(endpoint);
      if (known === undefined) {
        const hasCapacity = evictFor(origin);
        if (hasCapacity) {
          entries.put(entryOf({ endpoint, origin, expectedIdentity }));
        }
        return hasCapacity;
      }
      if (origin === "file" || origin === "operator") {
        entries.put({ ...known, origin, expectedIdentity, nextTryMs: 0, handshaken: false });
      } else if (origin === "handshake" && !isFromOperator(known)) {
        // The peer has just made a handshake, so it is online and is dialed at once.
        entries.put({ ...known, origin, nextTryMs: 0 });
      }
      return true;
    },
    /** Removes a peer. Returns false if the endpoint is unknown. */
    remove: (endpoint: string) => entries.remove(endpoint),

    /**
     * Returns endpoints to dial now, least recently dialed first, with at most 8 unverified peers. Records them as
     * dialed. Unverified peers are dropped after some attempts.
     */
    due(limit: number): string[] {
      const now = nowMs();
      for (const { endpoint } of entries.all().filter(mustDrop)) {
        entries.remove(endpoint);
      }
      const due = entries
        .all()
        .filter((entry) => isDue(entry, now))
        .sort((a, b) => a.lastDialedMs - b.lastDialedMs);
      const unverified = due.filter(isUnverified).slice(0, maxUnverifiedAtOnce);
      const others = due.filter((entry) => !isUnverified(entry)).slice(0, limit - unverified.length);
      const endpoints = [...others, ...unverified].map(({ endpoint }) => endpoint);
      endpoints.forEach((endpoint) => entries.markDialed(endpoint, now));
      return endpoints;
    },

    /** Returns the verified peers that are online and not penalized. */
    healthy: (): readonly BookEntry[] => healthy().peers,
    /** Returns the highest block number that any of these peers reported; undefined if none has reported. */
    highestBlock: () => healthy().highestBlock,
    /** Returns the reasons for which the node uses none of its peers; undefined if it uses one, or has none. */
    whyNoneUsed(): string | undefined {
      if (healthy().peers.length > 0) {
        return undefined;
      }
      const reasons = entries.all().flatMap((entry) => {
        const reason = isUnverifiedGossip(entry) ? undefined : whyUnused(entry);
        return reason === undefined ? [] : [`${entry.endpoint}: ${reason}`];
      });
      const more = reasons.length > maxReasons ? [`(and ${reasons.length - maxReasons} others)`] : [];
      return reasons.length === 0 ? undefined : [...reasons.slice(0, maxReasons), ...more].join(" ");
    },
    verified: (identity: string) => entries.holderOf(identity),
    /** Returns true if the operator named a peer that must prove this identity. */
    isNamed: (identity: string) =>
      entries.all().some((entry) => isFromOperator(entry) && entry.expectedIdentity === identity),
    findIdentityConflict,
    /**
     * Returns random healthy peers as gossip for another peer.
     *
     * @param except identity that is left out.
     */
    sample: (limit: number, except: string) =>
      shuffle(healthy().peers.filter(({ identity }) => identity !== except))
        .slice(0, limit)
        .map(({ announced, identity }) => ({ endpoint: announced, identity: identity! })),

    recordRejection,
    recordRefusal,
    /** Records a failed call. */
    recordFailure: (endpoint: string, failure: string) =>
      change(endpoint, (entry, now) => failedFields(entry, now, failure)),
    /** Records a status that the peer reported. */
    recordStatus: (endpoint: string, status: VerifiedStatus) =>
      change(endpoint, (entry, now) => respondedFields(status, entry, now)),
    /** Records a successful handshake. Returns an error message if the peer is rejected all the same. */
    recordHandshake(endpoint: string, proven: ProvenPeer): string | undefined {
      const entry = entries.get(endpoint);
      const rejection = entry && findRejectionReason(entry, proven);
      if (rejection !== undefined) {
        recordRejection(endpoint, rejection);
      } else if (entry !== undefined) {
        const { status, ...proof } = proven;
        releaseIdentity(proof.identity, endpoint);
        const now = nowMs();
        const refusal = entry.identity === proof.identity ? entry.refusal : undefined;
        const responded = { ...respondedFields(status, entry, now), refusal };
        entries.put({ ...entry, ...proof, ...responded, verifiedMs: now, handshaken: true });
      }
      return rejection;
    },
    /** Penalizes a peer that sent invalid data: 1 min at first, twice as long each time, up to 1 h. */
    penalize: (endpoint: string, message: string) =>
      change(endpoint, ({ penalties }, now) => ({
        penalties: penalties + 1,
        penalizedUntilMs: now + Math.min(maxPenaltyMs, firstPenaltyMs * 2 ** Math.min(penalties, 10)),
        message,
      })),
    /**
     * Pauses a peer for 10 s after it sent no blocks, so that other peers are tried first. The network may be the cause,
     * or the peer may refuse to send them, so this is not a penalty.
     */
    pause: (endpoint: string, message: string) =>
      change(endpoint, ({ penalizedUntilMs }, now) => ({
        penalizedUntilMs: Math.max(penalizedUntilMs, now + pausedMs),
        message,
      })),

    drainChanges: () => entries.drainChanges(),
    restoreChanges: (changes: BookChanges) => entries.restoreChanges(changes),
  };
}

function higher(one: bigint | undefined, other: bigint | undefined): bigint | undefined {
  return one === undefined || (other !== undefined && other > one) ? other : one;
}

/** Returns the items in random order. */
export function shuffle<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, chance: Math.random() }))
    .sort((a, b) => a.chance - b.chance)
    .map(({ item }) => item);
}
