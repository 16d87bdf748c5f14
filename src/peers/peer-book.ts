/**
 * The address book: every peer that the node has heard of, and what it last learnt of each. What others say of a peer is
 * hearsay until the peer itself has proved who it is, at the address where it was asked.
 */
import { makeImmutable } from "../base/immutable.js";
import type { ReadStatus } from "./introduction.js";
import {
  blank,
  type BookEntry,
  entryOf,
  isHearsay,
  isOperators,
  isShown,
  isStranger,
  type Peer,
  type PeerOrigin,
  seen,
  type StoredPeer,
  toPeer,
} from "./peer.js";

/** What a peer has proved of itself. */
export interface PeerProof {
  readonly identity: string;
  readonly connectionString: string;
  readonly announced: string;
  readonly status: ReadStatus;
}

/** Changes to be stored. */
export interface BookChanges {
  readonly saved: readonly StoredPeer[];
  readonly removed: readonly string[];
}

/** The book. */
export interface PeerBook {
  /** The peers that the operator named and those that were asked, for everybody. The same list until one changes. */
  list(): readonly Peer[];
  entries(): readonly BookEntry[];
  get(endpoint: string): BookEntry | undefined;
  /** The node knows nobody but by hearsay. */
  isEmpty(): boolean;
  /** Hears of a peer. False when there is no room for it. */
  hear(endpoint: string, origin: PeerOrigin, expectedIdentity?: string): boolean;
  /** Forgets a peer. False when it is unknown. */
  forget(endpoint: string): boolean;
  /** Endpoints to ask now: the longest not asked first, and few that are hearsay. */
  due(limit: number): string[];
  /** Why an identity cannot be that of this endpoint: another live one holds it. */
  whyHeldElsewhere(identity: string, endpoint: string): string | undefined;
  /** The peer proved who it is. Gives why it is refused all the same. */
  recordProof(endpoint: string, proof: PeerProof): string | undefined;
  /** The peer said how far it is. */
  recordStatus(endpoint: string, status: ReadStatus): void;
  recordFailure(endpoint: string): void;
  /** The peer answered, and is not to be believed. */
  recordRefusal(endpoint: string, reason: string): void;
  /** The peer sent what it should not have. */
  distrust(endpoint: string, reason: string): void;
  /** Verified peers that answer and are believed. */
  believed(): readonly BookEntry[];
  /** Number of the newest block that any of them has; undefined while none has said. Asked at every look at health. */
  highestBlock(): bigint | undefined;
  verified(identity: string): BookEntry | undefined;
  /** Verified peers at random, for others to hear of. */
  sample(most: number, except: string): { readonly endpoint: string; readonly identity: string }[];
  /** What has changed since the last time. */
  takeChanges(): BookChanges;
  /** Puts changes back that could not be stored. */
  returnChanges(changes: BookChanges): void;
}

/** What the book needs. */
export interface PeerBookParts {
  readonly ownIdentity: string;
  readonly stored: readonly StoredPeer[];
  /** Time between two looks at a peer that answers. */
  readonly intervalMs: number;
  readonly nowMs: () => number;
}

/** Most peers that named themselves or were verified. */
const maxKnown = 1_000;
/** Most of those that are not verified: anybody can name as many as he likes. */
const maxUnverified = 64;
/** Most addresses that others told of. */
const maxHearsay = 1_000;
/** Of those, and of the unverified, so many are asked in one tick. */
const maxStrangersAtOnce = 8;
const hearsayTries = 4;
const longestPauseMs = 60_000;
/** An unverified peer is forgotten after this. */
const forgetStrangersAfterMs = 3_600_000;
/** A verified peer that was not seen for this long makes room for another one. */
const forgetSilentAfterMs = 24 * 3_600_000;
const firstDistrustMs = 60_000;
const longestDistrustMs = 3_600_000;

/** Builds the book. */
export function createPeerBook({ ownIdentity, stored, intervalMs, nowMs }: PeerBookParts): PeerBook {
  const entries = new Map<string, BookEntry>(stored.map((peer) => [peer.endpoint, entryOf(peer)]));
  const endpoints = new Map<string, string>();
  let peers: readonly Peer[] | undefined;
  /** What {@link PeerBook.highestBlock} gives until an entry changes, or is believed again. */
  let highest: { readonly block: bigint | undefined; readonly untilMs: number } | undefined;
  const dirty = new Set<string>();
  const removed = new Set<string>();
  for (const { endpoint, identity, verifiedMs } of entries.values()) {
    if (identity !== undefined && verifiedMs !== undefined) {
      endpoints.set(identity, endpoint);
    }
  }

  function put(entry: BookEntry): void {
    if (isWorthStoring(entries.get(entry.endpoint), entry)) {
      dirty.add(entry.endpoint);
    }
    removed.delete(entry.endpoint);
    entries.set(entry.endpoint, Object.freeze(entry));
    peers = highest = undefined;
  }

  function forget(endpoint: string): boolean {
    const entry = entries.get(endpoint);
    if (entry === undefined) {
      return false;
    }
    entries.delete(endpoint);
    release(entry);
    peers = highest = undefined;
    dirty.delete(endpoint);
    removed.add(endpoint);
    return true;
  }

  /** Nobody holds the entry's identity any more. */
  function release({ identity, endpoint }: BookEntry): void {
    if (identity !== undefined && endpoints.get(identity) === endpoint) {
      endpoints.delete(identity);
    }
  }

  /** Makes room among entries of a kind; false when all of them are to be kept. */
  function makeRoom(
    most: number,
    isKind: (entry: BookEntry) => boolean,
    mayGo: (entry: BookEntry) => boolean,
  ): boolean {
    const kind = [...entries.values()].filter(isKind);
    if (kind.length < most) {
      return true;
    }
    const oldest = kind.find(mayGo);
    return oldest !== undefined && forget(oldest.endpoint);
  }

  function hasRoom(origin: PeerOrigin): boolean {
    switch (origin) {
      case "file":
      case "operator":
        return true;
      case "gossip":
        return makeRoom(maxHearsay, isHearsay, ({ failures, message }) => failures > 0 || message !== undefined);
      case "hello":
        return (
          makeRoom(
            maxUnverified,
            (entry) => isStranger(entry) && !isHearsay(entry),
            () => true,
          ) &&
          makeRoom(
            maxKnown,
            (entry) => !isOperators(entry) && !isHearsay(entry),
            ({ lastSeenMs = 0 }) => nowMs() - lastSeenMs > forgetSilentAfterMs,
          )
        );
    }
  }

  function isBelieved(entry: BookEntry): boolean {
    return entry.online && entry.introduced && entry.distrustedUntilMs <= nowMs();
  }

  function whyHeldElsewhere(identity: string, endpoint: string): string | undefined {
    const holder = entries.get(endpoints.get(identity) ?? "");
    const isElsewhere = holder !== undefined && holder.endpoint !== endpoint && holder.announced !== endpoint;
    return isElsewhere && holder.online ? `Its identity is held by ${holder.endpoint}, which answers.` : undefined;
  }

  function recordFailure(endpoint: string): void {
    const entry = entries.get(endpoint);
    if (entry === undefined) {
      return;
    }
    const failures = entry.failures + 1;
    const pauseMs = Math.min(longestPauseMs, intervalMs * 2 ** Math.min(failures - 1, 20));
    // Not all at the same moment, where many went away together.
    const nextTryMs = nowMs() + pauseMs * (0.5 + Math.random() / 2);
    put({ ...entry, failures, nextTryMs, online: false, accepting: false, introduced: false });
  }

  function recordRefusal(endpoint: string, reason: string): void {
    const entry = entries.get(endpoint);
    if (entry !== undefined) {
      recordFailure(endpoint);
      release(entry);
      put({ ...entries.get(endpoint)!, verifiedMs: undefined, message: reason, lastAskedMs: nowMs() });
    }
  }

  return {
    list: () => (peers ??= makeImmutable([...entries.values()].filter(isShown).map(toPeer))),
    entries: () => [...entries.values()],
    get: (endpoint) => entries.get(endpoint),
    isEmpty: () => ![...entries.values()].some((entry) => !isStranger(entry)),

    hear(endpoint, origin, expectedIdentity) {
      const known = entries.get(endpoint);
      if (known === undefined) {
        const isWelcome = hasRoom(origin);
        if (isWelcome) {
          put(entryOf({ ...blank, endpoint, origin, expectedIdentity }));
        }
        return isWelcome;
      }
      if (origin === "file" || origin === "operator") {
        put({ ...known, origin, expectedIdentity, nextTryMs: 0, introduced: false });
      } else if (origin === "hello" && !isOperators(known)) {
        // It is there, so it is asked at once.
        put({ ...known, origin, nextTryMs: 0 });
      }
      return true;
    },

    forget,

    due(limit) {
      const now = nowMs();
      const due: BookEntry[] = [];
      for (const entry of entries.values()) {
        if (isStranger(entry) && entry.failures >= hearsayTries) {
          forget(entry.endpoint);
        } else if (
          isStranger(entry) &&
          entry.message !== undefined &&
          now - entry.lastAskedMs > forgetStrangersAfterMs
        ) {
          forget(entry.endpoint);
        } else if (entry.nextTryMs <= now && now - entry.lastAskedMs >= intervalMs / 2) {
          due.push(entry);
        }
      }
      due.sort((a, b) => a.lastAskedMs - b.lastAskedMs);
      const strangers = due.filter(isStranger).slice(0, maxStrangersAtOnce);
      const known = due.filter((entry) => !isStranger(entry)).slice(0, limit - strangers.length);
      return [...known, ...strangers].map(({ endpoint }) => {
        entries.set(endpoint, Object.freeze({ ...entries.get(endpoint)!, lastAskedMs: now }));
        return endpoint;
      });
    },

    whyHeldElsewhere,
    recordFailure,
    recordRefusal,

    recordProof(endpoint, { identity, connectionString, announced, status }) {
      const entry = entries.get(endpoint);
      if (entry === undefined) {
        return undefined;
      }
      const refusal = whyNot(entry, identity, announced) ?? whyHeldElsewhere(identity, endpoint);
      if (refusal !== undefined) {
        recordRefusal(endpoint, refusal);
        return refusal;
      }
      const holder = endpoints.get(identity);
      if (holder !== undefined && holder !== endpoint) {
        const moved = entries.get(holder)!;
        if (isOperators(moved)) {
          release(moved);
          put({
            ...moved,
            verifiedMs: undefined,
            introduced: false,
            message: `Its identity has moved to ${endpoint}.`,
          });
        } else {
          forget(holder);
        }
      }
      release(entry);
      endpoints.set(identity, endpoint);
      const now = nowMs();
      put({
        ...entry,
        identity,
        connectionString,
        announced,
        ...seen(status, now),
        verifiedMs: now,
        introduced: true,
        message: entry.distrustedUntilMs > now ? entry.message : undefined,
      });
      return undefined;
    },

    recordStatus(endpoint, status) {
      const entry = entries.get(endpoint);
      if (entry !== undefined) {
        const now = nowMs();
        put({ ...entry, ...seen(status, now), message: entry.distrustedUntilMs > now ? entry.message : undefined });
      }
    },

    distrust(endpoint, reason) {
      const entry = entries.get(endpoint);
      if (entry !== undefined) {
        const forMs = Math.min(longestDistrustMs, firstDistrustMs * 2 ** Math.min(entry.offences, 10));
        const distrustedUntilMs = nowMs() + forMs;
        put({ ...entry, offences: entry.offences + 1, distrustedUntilMs, message: reason });
      }
    },

    believed: () => [...entries.values()].filter(isBelieved),

    highestBlock() {
      const now = nowMs();
      if (highest === undefined || highest.untilMs <= now) {
        let block: bigint | undefined;
        let untilMs = Infinity;
        for (const entry of entries.values()) {
          if (entry.distrustedUntilMs > now) {
            untilMs = Math.min(untilMs, entry.distrustedUntilMs);
          } else if (
            isBelieved(entry) &&
            entry.head !== undefined &&
            !(block !== undefined && block >= entry.head.number)
          ) {
            block = entry.head.number;
          }
        }
        highest = { block, untilMs };
      }
      return highest.block;
    },

    verified(identity) {
      const entry = entries.get(endpoints.get(identity) ?? "");
      return entry?.verifiedMs === undefined ? undefined : entry;
    },

    sample(most, except) {
      const known = [...entries.values()].filter((entry) => isBelieved(entry) && entry.identity !== except);
      for (let i = 0; i < Math.min(most, known.length); i++) {
        const j = i + Math.floor(Math.random() * (known.length - i));
        [known[i], known[j]] = [known[j]!, known[i]!];
      }
      return known.slice(0, most).map(({ announced, identity }) => ({ endpoint: announced, identity: identity! }));
    },

    takeChanges() {
      const changes = { saved: [...dirty].map((endpoint) => entries.get(endpoint)!), removed: [...removed] };
      dirty.clear();
      removed.clear();
      return changes;
    },

    returnChanges(changes) {
      for (const { endpoint } of changes.saved) {
        if (entries.has(endpoint)) {
          dirty.add(endpoint);
        }
      }
      for (const endpoint of changes.removed) {
        if (!entries.has(endpoint)) {
          removed.add(endpoint);
        }
      }
    },
  };

  function whyNot(entry: BookEntry, identity: string, announced: string): string | undefined {
    if (identity === ownIdentity) {
      return "It is this node itself.";
    }
    if (entry.expectedIdentity !== undefined && entry.expectedIdentity !== identity) {
      return `The peer proved to be ${identity}, which is not the identity expected of it.`;
    }
    return announced === entry.endpoint || isOperators(entry)
      ? undefined
      : `It names itself ${announced}, and not as it was found.`;
  }
}

/** The time of the last answer alone is stored now and then. */
const storeSeenEveryMs = 300_000;

function isWorthStoring(before: StoredPeer | undefined, after: StoredPeer): boolean {
  return (
    before === undefined ||
    before.origin !== after.origin ||
    before.identity !== after.identity ||
    before.expectedIdentity !== after.expectedIdentity ||
    before.connectionString !== after.connectionString ||
    before.verifiedMs !== after.verifiedMs ||
    before.failures !== after.failures ||
    Math.floor((before.lastSeenMs ?? 0) / storeSeenEveryMs) !== Math.floor((after.lastSeenMs ?? 0) / storeSeenEveryMs)
  );
}
