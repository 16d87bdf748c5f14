/** The entries of the address book, who of them holds which identity, and what has changed since it was last stored. */
import { type BookEntry, entryOf, type StoredPeer } from "./peer.js";

export interface BookChanges {
  readonly saved: readonly StoredPeer[];
  readonly removed: readonly string[];
}

/** The entries, in the order in which the node learned of them. */
export interface BookEntries {
  get(endpoint: string): BookEntry | undefined;
  all(): BookEntry[];
  /** The verified peer with this identity. */
  holderOf(identity: string): BookEntry | undefined;
  /** Adds an entry, or puts it in the place of the one with its endpoint; as verified, it holds its identity. */
  put(entry: BookEntry): void;
  /** Notes that a peer is dialed, which is nobody else's business. */
  markDialed(endpoint: string, dialedMs: number): void;
  /** False when it is unknown. */
  forget(endpoint: string): boolean;
  /** Another number after each change that others can see. */
  revision(): number;
  /** What has changed since the last time. */
  takeChanges(): BookChanges;
  /** Puts changes back that could not be stored. */
  returnChanges(changes: BookChanges): void;
}

export function createBookEntries(stored: readonly StoredPeer[]): BookEntries {
  const entries = new Map<string, BookEntry>();
  /** Identity to the endpoint that holds it. */
  const holders = new Map<string, string>();
  const changes = createChangeLog(entries);
  let revision = 0;

  function index(entry: BookEntry): void {
    if (entry.identity !== undefined && entry.verifiedMs !== undefined) {
      holders.set(entry.identity, entry.endpoint);
    }
  }

  function release({ identity, endpoint }: BookEntry): void {
    if (identity !== undefined && holders.get(identity) === endpoint) {
      holders.delete(identity);
    }
  }

  for (const peer of stored) {
    const entry = entryOf(peer);
    entries.set(peer.endpoint, entry);
    index(entry);
  }

  return {
    get: (endpoint) => entries.get(endpoint),
    all: () => [...entries.values()],
    holderOf: (identity) => entries.get(holders.get(identity) ?? ""),
    put(entry) {
      const before = entries.get(entry.endpoint);
      if (before !== undefined) {
        release(before);
      }
      changes.put(before, entry);
      entries.set(entry.endpoint, Object.freeze(entry));
      index(entry);
      revision++;
    },
    markDialed(endpoint, lastDialedMs) {
      entries.set(endpoint, Object.freeze({ ...entries.get(endpoint)!, lastDialedMs }));
    },
    forget(endpoint) {
      const entry = entries.get(endpoint);
      if (entry === undefined) {
        return false;
      }
      entries.delete(endpoint);
      release(entry);
      changes.remove(endpoint);
      revision++;
      return true;
    },
    revision: () => revision,
    takeChanges: () => changes.take(),
    returnChanges: (taken) => changes.giveBack(taken),
  };
}

/** What has changed since it was last taken. */
function createChangeLog(entries: ReadonlyMap<string, BookEntry>) {
  const dirty = new Set<string>();
  const removed = new Set<string>();
  return {
    put(before: StoredPeer | undefined, after: StoredPeer): void {
      if (isWorthStoring(before, after)) {
        dirty.add(after.endpoint);
      }
      removed.delete(after.endpoint);
    },
    remove(endpoint: string): void {
      dirty.delete(endpoint);
      removed.add(endpoint);
    },
    take(): BookChanges {
      const changes = { saved: [...dirty].map((endpoint) => entries.get(endpoint)!), removed: [...removed] };
      dirty.clear();
      removed.clear();
      return changes;
    },
    giveBack(changes: BookChanges): void {
      changes.saved.filter(({ endpoint }) => entries.has(endpoint)).forEach(({ endpoint }) => dirty.add(endpoint));
      changes.removed.filter((endpoint) => !entries.has(endpoint)).forEach((endpoint) => removed.add(endpoint));
    },
  };
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
