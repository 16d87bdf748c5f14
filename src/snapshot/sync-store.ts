/** How far a snapshot was taken in, in the database. */
import type { Queries } from "../db/queries/database.js";

/** A snapshot that is being taken in. */
export interface SyncState {
  /** Its description. */
  readonly snapshot: Uint8Array;
  /** Headers are stored from its own down to this one. */
  readonly lowestHeader: number;
  /** Leaves of the commitment tree that are stored. */
  readonly leafCount: number;
  /** Chunks that are stored. */
  readonly chunks: ReadonlySet<number>;
}

interface JoinRow {
  readonly snapshot: Uint8Array;
  readonly lowest_header: number;
  readonly leaf_count: number;
}

export async function readSync(db: Queries): Promise<SyncState | undefined> {
  const row = await db.first<JoinRow>((sql) => sql("snapshot_join").select("snapshot", "lowest_header", "leaf_count"));
  if (row === undefined) {
    return undefined;
  }
  const chunks = await db.rows<{ chunk: number }>((sql) => sql("snapshot_chunks").select("chunk"));
  const { snapshot, lowest_header: lowestHeader, leaf_count: leafCount } = row;
  return { snapshot, lowestHeader, leafCount, chunks: new Set(chunks.map(({ chunk }) => chunk)) };
}

/** Begins to take one in. */
export async function beginSync(db: Queries, snapshot: Uint8Array, blockNumber: bigint): Promise<void> {
  const number = Number(blockNumber);
  await db.run((sql) =>
    sql("snapshot_join").insert({
      ...{ id: 1, snapshot: Buffer.from(snapshot), block_number: number },
      ...{ lowest_header: number + 1, leaf_count: 0 },
    }),
  );
}

export async function saveLowestHeader(db: Queries, number: number): Promise<void> {
  await db.run((sql) => sql("snapshot_join").update({ lowest_header: number }));
}

export async function saveLeafCount(db: Queries, count: number): Promise<void> {
  await db.run((sql) => sql("snapshot_join").update({ leaf_count: count }));
}

/** False where it is stored already. */
export async function saveChunk(db: Queries, chunk: number): Promise<boolean> {
  const known = await db.first((sql) => sql("snapshot_chunks").where({ chunk }).select("chunk"));
  if (known !== undefined) {
    return false;
  }
  await db.run((sql) => sql("snapshot_chunks").insert({ chunk }));
  return true;
}

/** Ends it, whatever came of it. */
export async function endSync(db: Queries): Promise<void> {
  await db.runAll((sql) => [sql("snapshot_chunks").delete(), sql("snapshot_join").delete()]);
}
