/**
 * The address book: every peer that the node knows of, and what it last learned of each. What others say of a peer is
 * gossip until the peer itself has proved who it is, at the address where it was dialed.
 */
import { makeImmutable } from "../../base/caches/immutable.js";
import { createHealthyPeers } from "./healthy-peers.js";
import { createBookEviction } from "./book-eviction.js";
import { type BookChanges, createBookEntries } from "./book-entries.js";
import { createBookIdentities } from "./book-identities.js";
import { type BookRecords, createBookRecords } from "./book-records.js";
import { createDialSchedule } from "./dial-schedule.js";
import {
  blank,
  type BookEntry,
  entryOf,
  isOperators,
  isShown,
  isUnverified,
  type Peer,
  type PeerOrigin,
  type StoredPeer,
  toPeer,
} from "./peer.js";

export interface PeerBook extends BookRecords {
  /** The peers that the operator named and those that were dialed, for everybody. The same list until one changes. */
  list(): readonly Peer[];
  entries(): readonly BookEntry[];
  get(endpoint: string): BookEntry | undefined;
  /** The node knows nobody but by gossip. */
  isEmpty(): boolean;
  /** Adds a peer, or what is new about it. False when there is no room for it. */
  add(endpoint: string, origin: PeerOrigin, expectedIdentity?: string): boolean;
  /** Forgets a peer. False when it is unknown. */
  forget(endpoint: string): boolean;
  /** Endpoints to dial now: the longest not dialed first, and few that are unverified. */
  due(limit: number): string[];
  /** Verified peers that answer and are believed. */
  believed(): readonly BookEntry[];
  /** Number of the newest block that any of them has; undefined while none has said. Asked at every look at health. */
  highestBlock(): bigint | undefined;
  verified(identity: string): BookEntry | undefined;
  /** The operator named a peer, and that it must prove this identity. */
  isNamed(identity: string): boolean;
  /** Why an identity cannot be that of this endpoint: another live one holds it. */
  whyHeldElsewhere(identity: string, endpoint: string): string | undefined;
  /** Believed peers at random, as gossip for others. */
  sample(most: number, except: string): { readonly endpoint: string; readonly identity: string }[];
  /** What has changed since the last time. */
  takeChanges(): BookChanges;
  /** Puts changes back that could not be stored. */
  returnChanges(changes: BookChanges): void;
}

export interface PeerBookDeps {
  readonly ownIdentity: string;
  readonly stored: readonly StoredPeer[];
  /** Time between two looks at a peer that answers. */
  readonly intervalMs: number;
  readonly nowMs: () => number;
}

/** Builds a book of what was stored. */
export function createPeerBook({ ownIdentity, stored, intervalMs, nowMs }: PeerBookDeps): PeerBook {
  const entries = createBookEntries(stored);
  const identities = createBookIdentities(entries, ownIdentity);
  const hasRoom = createBookEviction(entries, nowMs);
  const believed = createHealthyPeers(entries, nowMs);
  let shown: { readonly peers: readonly Peer[]; readonly revision: number } | undefined;

  return {
    ...createBookRecords({ entries, identities, intervalMs, nowMs }),

    list() {
      if (shown?.revision !== entries.revision()) {
        shown = { peers: makeImmutable(entries.all().filter(isShown).map(toPeer)), revision: entries.revision() };
      }
      return shown.peers;
    },
    entries: () => entries.all(),
    get: (endpoint) => entries.get(endpoint),
    isEmpty: () => entries.all().every(isUnverified),

    add(endpoint, origin, expectedIdentity) {
      const known = entries.get(endpoint);
      if (known === undefined) {
        const isWelcome = hasRoom(origin);
        if (isWelcome) {
          entries.put(entryOf({ ...blank, endpoint, origin, expectedIdentity }));
        }
        return isWelcome;
      }
      if (origin === "file" || origin === "operator") {
        entries.put({ ...known, origin, expectedIdentity, nextTryMs: 0, handshaken: false });
      } else if (origin === "handshake" && !isOperators(known)) {
        // It is there, so it is dialed at once.
        entries.put({ ...known, origin, nextTryMs: 0 });
      }
      return true;
    },
    forget: (endpoint) => entries.forget(endpoint),
    due: createDialSchedule({ entries, intervalMs, nowMs }),

    believed: () => believed.list(),
    highestBlock: () => believed.highestBlock(),
    verified: (identity) => entries.holderOf(identity),
    isNamed: (identity) => entries.all().some((entry) => isOperators(entry) && entry.expectedIdentity === identity),
    whyHeldElsewhere: (identity, endpoint) => identities.whyHeldElsewhere(identity, endpoint),
    sample: (most, except) =>
      pick(
        believed.list().filter(({ identity }) => identity !== except),
        most,
      ).map(({ announced, identity }) => ({ endpoint: announced, identity: identity! })),

    takeChanges: () => entries.takeChanges(),
    returnChanges: (changes) => entries.returnChanges(changes),
  };
}

/** Some items of a list, at random. */
function pick<T>(items: readonly T[], most: number): T[] {
  const mixed = [...items];
  for (let i = 0; i < Math.min(most, mixed.length); i++) {
    const j = i + Math.floor(Math.random() * (mixed.length - i));
    [mixed[i], mixed[j]] = [mixed[j]!, mixed[i]!];
  }
  return mixed.slice(0, most);
}
