/**
 * Address book: every peer that the node knows, and the latest information about each. Statements about a peer by
 * others are gossip until the peer proves its identity at the address where this node dialed it.
 */
import { makeImmutable } from "../../base/caches/immutable.js";
import { createHealthyPeers } from "./healthy-peers.js";
import { createBookEviction } from "./book-eviction.js";
import { type BookChanges, createBookEntries } from "./book-entries.js";
import { createBookIdentities } from "./book-identities.js";
import { type BookRecords, createBookRecords } from "./book-records.js";
import { createDialSchedule } from "./dial-schedule.js";
import {
  unknownPeer,
  type BookEntry,
  entryOf,
  isFromOperator,
  isListed,
  isUnverified,
  type Peer,
  type PeerOrigin,
  type StoredPeer,
  peerMessage,
} from "./peer.js";

export interface PeerBook extends BookRecords {
  /**
   * Returns the peers that API responses show. Unverified gossip is hidden until a handshake with the peer is rejected.
   * Returns the same list until an entry changes.
   */
  list(): readonly Peer[];
  entries(): readonly BookEntry[];
  get(endpoint: string): BookEntry | undefined;
  /** Returns true if all known peers are unverified and none was named by the operator. */
  isEmpty(): boolean;
  /** Adds a peer, or updates its origin. Returns false if the book has no capacity for the peer. */
  add(endpoint: string, origin: PeerOrigin, expectedIdentity?: string): boolean;
  /** Removes a peer. Returns false if the endpoint is unknown. */
  remove(endpoint: string): boolean;
  /**
   * Returns endpoints to dial now, least recently dialed first, with at most 8 unverified peers. Records them as
   * dialed.
   */
  due(limit: number): string[];
  /** Returns the verified peers that are online and not penalized. */
  healthy(): readonly BookEntry[];
  /**
   * Returns the highest block number that any of these peers reported; undefined if none has reported. Cached, since
   * every health check calls it.
   */
  highestBlock(): bigint | undefined;
  verified(identity: string): BookEntry | undefined;
  /** Returns true if the operator named a peer that must prove this identity. */
  isNamed(identity: string): boolean;
  /** Returns an error message if another peer that is online holds the identity; otherwise undefined. */
  findIdentityConflict(identity: string, endpoint: string): string | undefined;
  /**
   * Returns random healthy peers as gossip for another peer.
   *
   * @param except identity that is left out.
   */
  sample(limit: number, except: string): { readonly endpoint: string; readonly identity: string }[];
  /** Returns and clears the changes since the last call. */
  drainChanges(): BookChanges;
  /** Restores changes that could not be stored. */
  restoreChanges(changes: BookChanges): void;
}

export interface PeerBookDeps {
  readonly ownIdentity: string;
  readonly stored: readonly StoredPeer[];
  /** Time between two polls of a peer that responds, in milliseconds. */
  readonly intervalMs: number;
  readonly nowMs: () => number;
}

/** Creates an address book from the stored peers. */
export function createPeerBook({ ownIdentity, stored, intervalMs, nowMs }: PeerBookDeps): PeerBook {
  const entries = createBookEntries(stored);
  const identities = createBookIdentities(entries, ownIdentity);
  const evictFor = createBookEviction(entries, nowMs);
  const healthy = createHealthyPeers(entries, nowMs);
  let cachedList: { readonly peers: readonly Peer[]; readonly revision: number } | undefined;

  return {
    ...createBookRecords({ entries, identities, intervalMs, nowMs }),

    list() {
      if (cachedList?.revision !== entries.revision()) {
        cachedList = {
          peers: makeImmutable(entries.all().filter(isListed).map(peerMessage)),
          revision: entries.revision(),
        };
      }
      return cachedList.peers;
    },
    entries: () => entries.all(),
    get: (endpoint) => entries.get(endpoint),
    isEmpty: () => entries.all().every(isUnverified),

    add(endpoint, origin, expectedIdentity) {
      const known = entries.get(endpoint);
      if (known === undefined) {
        const hasCapacity = evictFor(origin);
        if (hasCapacity) {
          entries.put(entryOf({ ...unknownPeer, endpoint, origin, expectedIdentity }));
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
    remove: (endpoint) => entries.remove(endpoint),
    due: createDialSchedule({ entries, intervalMs, nowMs }),

    healthy: () => healthy.list(),
    highestBlock: () => healthy.highestBlock(),
    verified: (identity) => entries.holderOf(identity),
    isNamed: (identity) => entries.all().some((entry) => isFromOperator(entry) && entry.expectedIdentity === identity),
    findIdentityConflict: (identity, endpoint) => identities.findIdentityConflict(identity, endpoint),
    sample: (limit, except) =>
      pickRandom(
        healthy.list().filter(({ identity }) => identity !== except),
        limit,
      ).map(({ announced, identity }) => ({ endpoint: announced, identity: identity! })),

    drainChanges: () => entries.drainChanges(),
    restoreChanges: (changes) => entries.restoreChanges(changes),
  };
}

/** Returns up to `limit` items of a list, in random order. */
function pickRandom<T>(items: readonly T[], limit: number): T[] {
  const shuffled = [...items];
  for (let i = 0; i < Math.min(limit, shuffled.length); i++) {
    const j = i + Math.floor(Math.random() * (shuffled.length - i));
    [shuffled[i], shuffled[j]] = [shuffled[j]!, shuffled[i]!];
  }
  return shuffled.slice(0, limit);
}
