/** Address book in the database. */
import { inChunks } from "../../db/rows/chunks.js";
import type { Database, Queries } from "../../db/queries/database.js";
import type { PeerOrigin, StoredPeer } from "./peer.js";
import type { BookChanges } from "./book-entries.js";
import type { PeerBook } from "./peer-book.js";

export interface PeerStore {
  /** Loads all peers, in the order in which the node learned of them. */
  load(): Promise<StoredPeer[]>;
  /** Stores changes in one transaction. */
  save(changes: BookChanges): Promise<void>;
}

interface PeerRow {
  readonly endpoint: string;
  readonly origin: (typeof storedOrigins)[PeerOrigin];
  readonly identity: string | null;
  readonly expected_identity: string | null;
  readonly connection_string: string | null;
  readonly verified_ms: number | null;
  readonly last_seen_ms: number | null;
  readonly failures: number;
  readonly next_try_ms: number;
}

/** Origins of peers, as the database names them. */
const storedOrigins = { file: "file", operator: "operator", handshake: "hello", gossip: "gossip" } as const;
const originsByStored = new Map(
  Object.entries(storedOrigins).map(([origin, stored]) => [stored, origin as PeerOrigin] as const),
);

/** Loads the stored peers, in the order in which the node learned of them. */
export async function loadPeers(read: Queries): Promise<StoredPeer[]> {
  const rows = await read.rows<PeerRow>((sql) => sql("peers").orderBy("id").select("*"));
  return rows.map((row) => ({
    endpoint: row.endpoint,
    origin: originsByStored.get(row.origin)!,
    identity: row.identity ?? undefined,
    expectedIdentity: row.expected_identity ?? undefined,
    connectionString: row.connection_string ?? undefined,
    verifiedMs: row.verified_ms ?? undefined,
    lastSeenMs: row.last_seen_ms ?? undefined,
    failures: row.failures,
    nextTryMs: row.next_try_ms,
  }));
}

export function createPeerStore({ read, transaction }: Pick<Database, "read" | "transaction">): PeerStore {
  return {
    load: () => loadPeers(read),
    async save({ saved, removed }) {
      await transaction((db) =>
        db.runAll((sql) => [
          ...inChunks(removed).map((some) => sql("peers").whereIn("endpoint", some).delete()),
          ...inChunks(saved.map(toRow)).map((some) => sql("peers").insert(some).onConflict("endpoint").merge()),
        ]),
      );
    },
  };
}

function toRow(peer: StoredPeer): PeerRow {
  return {
    endpoint: peer.endpoint,
    origin: storedOrigins[peer.origin],
    identity: peer.identity ?? null,
    expected_identity: peer.expectedIdentity ?? null,
    connection_string: peer.connectionString ?? null,
    verified_ms: peer.verifiedMs ?? null,
    last_seen_ms: peer.lastSeenMs ?? null,
    failures: peer.failures,
    next_try_ms: Math.round(peer.nextTryMs),
  };
}

/**
 * Creates the function that stores the changes of the book. Calls run one after the other. Changes that could not be
 * stored are stored by the next call.
 */
export function createBookSaver(
  book: Pick<PeerBook, "drainChanges" | "restoreChanges">,
  store: Pick<PeerStore, "save">,
): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  return () => {
    const saved = last.then(async () => {
      const changes = book.drainChanges();
      if (changes.saved.length + changes.removed.length === 0) {
        return;
      }
      try {
        await store.save(changes);
      } catch (error) {
        book.restoreChanges(changes);
        throw error;
      }
    });
    last = saved.catch(() => undefined);
    return saved;
  };
}
