/** Entries of the address book, with an index of identities and the changes since the last save. */
import { type BookEntry, entryOf, type NewPeer, type StoredPeer } from "./peer.js";

export interface BookChanges {
  readonly saved: readonly StoredPeer[];
  readonly removed: readonly string[];
}

/** Creates the entries. Their order is the one in which the node learned of them. */
export function createBookEntries(stored: readonly NewPeer[]) {
  const entries = new Map(stored.map((peer) => [peer.endpoint, entryOf(peer)]));
  /** Endpoint of the verified peer, by identity. */
  const endpointsByIdentity = new Map<string, string>();
  /** Endpoints whose entries differ from the stored ones. */
  const changed = new Set<string>();
  let revision = 0;

  function indexIdentity({ identity, verifiedMs, endpoint }: BookEntry): void {
    if (identity !== undefined && verifiedMs !== undefined) {
      endpointsByIdentity.set(identity, endpoint);
    }
  }

  function clearIdentity({ identity, endpoint }: BookEntry): void {
    if (identity !== undefined && endpointsByIdentity.get(identity) === endpoint) {
      endpointsByIdentity.delete(identity);
    }
  }

  entries.forEach(indexIdentity);

  return {
    get: (endpoint: string) => entries.get(endpoint),
    all: () => [...entries.values()],
    /** Returns the verified peer with this identity. */
    holderOf: (identity: string) => entries.get(endpointsByIdentity.get(identity) ?? ""),
    /** Adds an entry, or replaces the entry of the same endpoint. A verified entry becomes the holder of its identity. */
    put(entry: BookEntry): void {
      const before = entries.get(entry.endpoint);
      if (before !== undefined) {
        clearIdentity(before);
      }
      if (before === undefined || mustStore(before, entry)) {
        changed.add(entry.endpoint);
      }
      entries.set(entry.endpoint, Object.freeze(entry));
      indexIdentity(entry);
      revision++;
    },
    /** Records the time of a dial. The time is not stored, and does not change the revision. */
    markDialed(endpoint: string, lastDialedMs: number): void {
      entries.set(endpoint, Object.freeze({ ...entries.get(endpoint)!, lastDialedMs }));
    },
    /** Removes a peer. Returns false if the endpoint is unknown. */
    remove(endpoint: string): boolean {
      const entry = entries.get(endpoint);
      if (entry === undefined) {
        return false;
      }
      entries.delete(endpoint);
      clearIdentity(entry);
      changed.add(endpoint);
      revision++;
      return true;
    },
    /** Returns a number that increases with each change that API responses can show. */
    revision: () => revision,
    /** Returns and clears the changes since the last call. */
    drainChanges(): BookChanges {
      const endpoints = [...changed];
      changed.clear();
      return {
        saved: endpoints.flatMap((endpoint) => entries.get(endpoint) ?? []),
        removed: endpoints.filter((endpoint) => !entries.has(endpoint)),
      };
    },
    /** Restores changes that could not be stored. */
    restoreChanges({ saved, removed }: BookChanges): void {
      [...saved.map(({ endpoint }) => endpoint), ...removed].forEach((endpoint) => changed.add(endpoint));
    },
  };
}

/** Interval in milliseconds at which the time of the last response is stored if nothing else changed. */
const storeSeenEveryMs = 300_000;

const storedFields = ["origin", "identity", "expectedIdentity", "connectionString", "verifiedMs", "failures"] as const;

function mustStore(before: StoredPeer, after: StoredPeer): boolean {
  const seenAt = ({ lastSeenMs = 0 }: StoredPeer): number => Math.floor(lastSeenMs / storeSeenEveryMs);
  return seenAt(before) !== seenAt(after) || storedFields.some((field) => before[field] !== after[field]);
}
