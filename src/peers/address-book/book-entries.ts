/** Entries of the address book, with an index of identities and the changes since the last save. */
import { type BookEntry, entryOf, type StoredPeer } from "./peer.js";

export interface BookChanges {
  readonly saved: readonly StoredPeer[];
  readonly removed: readonly string[];
}

/** Entries of the address book, in the order in which the node learned of them. */
export interface BookEntries {
  get(endpoint: string): BookEntry | undefined;
  all(): BookEntry[];
  /** Returns the verified peer with this identity. */
  holderOf(identity: string): BookEntry | undefined;
  /** Adds an entry, or replaces the entry of the same endpoint. A verified entry becomes the holder of its identity. */
  put(entry: BookEntry): void;
  /** Records the time of a dial. The time is not stored, and does not change the revision. */
  markDialed(endpoint: string, dialedMs: number): void;
  /** Removes a peer. Returns false if the endpoint is unknown. */
  remove(endpoint: string): boolean;
  /** Returns a number that increases with each change that API responses can show. */
  revision(): number;
  /** Returns and clears the changes since the last call. */
  drainChanges(): BookChanges;
  /** Restores changes that could not be stored. */
  restoreChanges(changes: BookChanges): void;
}

export function createBookEntries(stored: readonly StoredPeer[]): BookEntries {
  const entries = new Map<string, BookEntry>();
  /** Endpoint of the verified peer, by identity. */
  const endpointsByIdentity = new Map<string, string>();
  const changes = createChangeLog(entries);
  let revision = 0;

  function indexIdentity(entry: BookEntry): void {
    if (entry.identity !== undefined && entry.verifiedMs !== undefined) {
      endpointsByIdentity.set(entry.identity, entry.endpoint);
    }
  }

  function clearIdentity({ identity, endpoint }: BookEntry): void {
    if (identity !== undefined && endpointsByIdentity.get(identity) === endpoint) {
      endpointsByIdentity.delete(identity);
    }
  }

  for (const peer of stored) {
    const entry = entryOf(peer);
    entries.set(peer.endpoint, entry);
    indexIdentity(entry);
  }

  return {
    get: (endpoint) => entries.get(endpoint),
    all: () => [...entries.values()],
    holderOf: (identity) => entries.get(endpointsByIdentity.get(identity) ?? ""),
    put(entry) {
      const before = entries.get(entry.endpoint);
      if (before !== undefined) {
        clearIdentity(before);
      }
      changes.put(before, entry);
      entries.set(entry.endpoint, Object.freeze(entry));
      indexIdentity(entry);
      revision++;
    },
    markDialed(endpoint, lastDialedMs) {
      entries.set(endpoint, Object.freeze({ ...entries.get(endpoint)!, lastDialedMs }));
    },
    remove(endpoint) {
      const entry = entries.get(endpoint);
      if (entry === undefined) {
        return false;
      }
      entries.delete(endpoint);
      clearIdentity(entry);
      changes.remove(endpoint);
      revision++;
      return true;
    },
    revision: () => revision,
    drainChanges: () => changes.drain(),
    restoreChanges: (drained) => changes.restore(drained),
  };
}

/** Creates the log of changes that are not stored yet. */
function createChangeLog(entries: ReadonlyMap<string, BookEntry>) {
  const dirty = new Set<string>();
  const removed = new Set<string>();
  return {
    put(before: StoredPeer | undefined, after: StoredPeer): void {
      if (mustStore(before, after)) {
        dirty.add(after.endpoint);
      }
      removed.delete(after.endpoint);
    },
    remove(endpoint: string): void {
      dirty.delete(endpoint);
      removed.add(endpoint);
    },
    drain(): BookChanges {
      const changes = { saved: [...dirty].map((endpoint) => entries.get(endpoint)!), removed: [...removed] };
      dirty.clear();
      removed.clear();
      return changes;
    },
    restore(changes: BookChanges): void {
      changes.saved.filter(({ endpoint }) => entries.has(endpoint)).forEach(({ endpoint }) => dirty.add(endpoint));
      changes.removed.filter((endpoint) => !entries.has(endpoint)).forEach((endpoint) => removed.add(endpoint));
    },
  };
}

/** Interval in milliseconds at which the time of the last response is stored if nothing else changed. */
const storeSeenEveryMs = 300_000;

function mustStore(before: StoredPeer | undefined, after: StoredPeer): boolean {
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
