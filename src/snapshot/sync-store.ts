/** Database store of the progress of a snapshot sync. */
import type { Queries } from "../db/queries/database.js";

/** Snapshot sync in progress. */
export interface SyncState {
  /** Encoded description of the snapshot. */
  readonly snapshot: Uint8Array;
  /** Lowest stored header; all headers from this one up to the snapshot's block are stored. */
  readonly lowestHeader: number;
  /** Number of stored leaves of the commitment tree. */
  readonly leafCount: number;
  /** Indexes of the stored chunks. */
  readonly chunks: ReadonlySet<number>;
}

interface SyncRow {
  readonly snapshot: Uint8Array;
  readonly lowest_header: number;
  readonly leaf_count: number;
}

/** Reads the progress of the sync; undefined if none was started. */
export async function readSync(db: Queries): Promise<SyncState | undefined> {
  const row = await db.first<SyncRow>((sql) => sql("snapshot_join").select("snapshot", "lowest_header", "leaf_count"));
  if (row === undefined) {
    return undefined;
  }
  const chunks = await db.rows<{ chunk: number }>((sql) => sql("snapshot_chunks").select("chunk"));
  const { snapshot, lowest_header: lowestHeader, leaf_count: leafCount } = row;
  return { snapshot, lowestHeader, leafCount, chunks: new Set(chunks.map(({ chunk }) => chunk)) };
}

/** Records the start of a snapshot sync. */
export async function startSync(db: Queries, snapshot: Uint8Array, blockNumber: bigint): Promise<void> {
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

/** Records a chunk as stored. Returns false if it already was. */
export async function saveChunk(db: Queries, chunk: number): Promise<boolean> {
  const known = await db.first((sql) => sql("snapshot_chunks").where({ chunk }).select("chunk"));
  if (known !== undefined) {
    return false;
  }
  await db.run((sql) => sql("snapshot_chunks").insert({ chunk }));
  return true;
}

/** Deletes the progress of a completed or abandoned sync. */
export async function endSync(db: Queries): Promise<void> {
  await db.runAll((sql) => [sql("snapshot_chunks").delete(), sql("snapshot_join").delete()]);
}
