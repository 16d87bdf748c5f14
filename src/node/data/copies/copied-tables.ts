/** Tables that are copied between databases: all except those that the migrations fill. */

export interface CopiedTable {
  readonly name: string;
  /** Primary key, by which rows are identified and scanned. */
  readonly key: readonly string[];
  /** Boolean columns, which are numbers on an engine without a boolean type. */
  readonly booleans?: readonly string[];
  /** Column whose values for new rows come from a sequence. */
  readonly sequence?: string;
  /** Fixed values of columns in the copy, regardless of the source. */
  readonly overrides?: Readonly<Record<string, null | number>>;
}

/** Tables of the chain. A table comes after those that it references. */
export const chainTables: readonly CopiedTable[] = [
  { name: "blocks", key: ["number"] },
  { name: "transactions", key: ["hash"] },
  { name: "programs", key: ["id"], booleans: ["deleted", "in_parts"], sequence: "id" },
  { name: "program_documents", key: ["address"] },
  { name: "program_fields", key: ["address", "position"] },
  { name: "program_chunks", key: ["address", "field", "position"] },
  { name: "program_readers", key: ["identity", "address"], booleans: ["allowed"] },
  { name: "commitments", key: ["commitment"] },
  { name: "merkle_roots", key: ["block_number"] },
  { name: "nullifiers", key: ["hash"] },
  { name: "senders", key: ["identity"] },
  { name: "tree_pages", key: ["tree", "path"] },
  { name: "tree_undo", key: ["path", "block_number"] },
  { name: "block_bounds", key: ["id"] },
  { name: "snapshot_join", key: ["id"] },
  { name: "snapshot_chunks", key: ["chunk"] },
  { name: "peers", key: ["id"], sequence: "id" },
  { name: "fork_evidence", key: ["identity", "block_number"], booleans: ["settled"] },
  {
    name: "writer_lease",
    key: ["id"],
    // Copy the identity of the owner and the epoch, but no lease: no process writes to the copy yet.
    overrides: { holder: null, host: null, machine: null, pid: null, since_ms: null, until_ms: 0 },
  },
];

export const mempoolTables: readonly CopiedTable[] = [
  { name: "pending_transactions", key: ["hash"] },
  { name: "rejected_transactions", key: ["hash"] },
];
