/** What is copied from one database to another: every table but those that the schema's own steps fill. */

/** A table. */
export interface CopiedTable {
  readonly name: string;
  /** Columns by which its rows are told apart, and walked over: its primary key. */
  readonly key: readonly string[];
  /** Columns of yes and no, which are numbers with an engine that has no type for them. */
  readonly booleans?: readonly string[];
  /** The column that numbers new rows. */
  readonly numbered?: string;
  /** What columns hold in the copy, whatever the source has. */
  readonly instead?: Readonly<Record<string, null | number>>;
}

/** The part of the chain; a table stands after those that it refers to. */
export const chainTables: readonly CopiedTable[] = [
  { name: "blocks", key: ["number"] },
  { name: "transactions", key: ["hash"] },
  { name: "programs", key: ["id"], booleans: ["deleted", "in_parts"], numbered: "id" },
  { name: "program_documents", key: ["address"] },
  { name: "program_fields", key: ["address", "position"] },
  { name: "program_chunks", key: ["address", "field", "position"] },
  { name: "program_readers", key: ["identity", "address"], booleans: ["allowed"] },
  { name: "commitments", key: ["commitment"] },
  { name: "merkle_nodes", key: ["id"] },
  { name: "merkle_roots", key: ["block_number"] },
  { name: "nullifiers", key: ["hash"] },
  { name: "senders", key: ["identity"] },
  { name: "tree_pages", key: ["tree", "path"] },
  { name: "tree_undo", key: ["path", "block_number"] },
  { name: "block_bounds", key: ["id"] },
  { name: "snapshot_join", key: ["id"] },
  { name: "snapshot_chunks", key: ["chunk"] },
  { name: "peers", key: ["id"], numbered: "id" },
  { name: "fork_evidence", key: ["identity", "block_number"], booleans: ["settled"] },
  {
    name: "writer_lease",
    key: ["id"],
    // Whose the database is goes along; nobody writes to the copy yet.
    instead: { holder: null, host: null, machine: null, pid: null, since_ms: null, until_ms: 0 },
  },
];

/** The part of the mempool. */
export const mempoolTables: readonly CopiedTable[] = [
  { name: "pending_transactions", key: ["hash"] },
  { name: "rejected_transactions", key: ["hash"] },
];
