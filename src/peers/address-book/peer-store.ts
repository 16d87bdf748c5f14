/** Address book in the database. */
import { inChunks } from "../../db/rows/chunks.js";
import type { Database, Queries } from "../../db/queries/database.js";
import type { PeerOrigin, StoredPeer } from "./peer.js";
import type { BookChanges } from "./book-entries.js";
import type { PeerBook } from "./peer-book.js";

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

/** Loads the stored peers, in the order in which the node learned of them. */
export async function loadPeers(read: Queries): Promise<StoredPeer[]> {
  const rows = await read.rows<PeerRow>((sql) => sql("peers").orderBy("id").select("*"));
  return rows.map((row) => ({
    endpoint: row.endpoint,
    origin: row.origin === "hello" ? "handshake" : row.origin,
    identity: row.identity ?? undefined,
    expectedIdentity: row.expected_identity ?? undefined,
    connectionString: row.connection_string ?? undefined,
    verifiedMs: row.verified_ms ?? undefined,
    lastSeenMs: row.last_seen_ms ?? undefined,
    failures: row.failures,
    nextTryMs: row.next_try_ms,
  }));
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

/** Stores changes in one transaction. */
export async function savePeers({ transaction }: Pick<Database, "transaction">, { saved, removed }: BookChanges) {
  await transaction((db) =>
    db.runAll((sql) => [
      ...inChunks(removed).map((some) => sql("peers").whereIn("endpoint", some).delete()),
      ...inChunks(saved.map(toRow)).map((some) => sql("peers").insert(some).onConflict("endpoint").merge()),
    ]),
  );
}

/**
 * Creates the function that stores the changes of the book. Calls run one after the other. Changes that could not be
 * stored are stored by the next call.
 */
export function createBookSaver(
  book: Pick<PeerBook, "drainChanges" | "restoreChanges">,
  database: Pick<Database, "transaction">,
): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  async function saveChanges(): Promise<void> {
    const changes = book.drainChanges();
    if (changes.saved.length + changes.removed.length > 0) {
      await savePeers(database, changes).catch((error: unknown) => {
        book.restoreChanges(changes);
        throw error;
      });
    }
  }
  return () => {
    const saved = last.then(saveChanges);
    last = saved.catch(() => undefined);
    return saved;
  };
}
