/**
 * Schema of a database, and the steps that later versions add to it. A released step never changes; append a new one.
 *
 * The column types are those that SQLite and PostgreSQL share. Field names are stored as JSON text (with quotes): a name may
 * contain any character, also NUL, which no text column of PostgreSQL accepts.
 */
import type { Knex } from "knex";
import { hashRootRow } from "../../db/rows/row-hashes.js";
import type { Queries, Query, QueryBuilder } from "../../db/queries/database.js";
import type { SchemaDialect } from "../../db/queries/dialects.js";
import { packNodes } from "./pack-nodes.js";

export interface Migration {
  readonly name: string;
  /** Converts rows before the queries run. */
  readonly convert?: (db: Queries) => Promise<void>;
  readonly queries: (sql: QueryBuilder, schema: SchemaDialect) => readonly Query[];
}

/** Number of the first step. Databases with a lower number hold a chain of an older format, and are rejected. */
export const firstStep = 13;

/** Adds the column of a row's checksum. A row without one is corrupt. */
function rowHash(table: Knex.CreateTableBuilder, name = "row_hash"): void {
  table.string(name, 32).notNullable().defaultTo("");
}

const root = "0x2134e76ac5d21aab186c2be1dd8f84ee880a1e46eaf712f9d371b6df22191f3e";
const leaves = { root, timestamp_ms: 0, leaf_count: 0, edge: Buffer.alloc(19 * 32) };

/** Root of the empty commitment tree, which block 0 has. */
const emptyRoot = { block_number: 0, ...leaves, row_hash: hashRootRow({ block_number: 0, ...leaves }) };

export const migrations: readonly Migration[] = [
  {
    name: "schema",
    queries: (sql, schema) => [
      sql.schema.createTable("blocks", (table) => {
        table.bigInteger("number").primary();
        table.string("hash", 66).notNullable().unique();
        table.string("previous_hash", 66);
        table.bigInteger("timestamp_ms").notNullable();
        // Block 0: the text of the genesis file.
        table.text("genesis");
        // As signed; block 0 has neither.
        table.binary("header");
        table.binary("signature");
        rowHash(table);
      }),
      sql.schema.createTable("block_bounds", (table) => {
        // There is one row, with this 1.
        table.integer("id").primary();
        // The oldest block whose transactions are retained.
        table.bigInteger("lowest_block").notNullable();
        // The oldest block whose transactions are indexed by sender and program.
        table.bigInteger("indexed_from").notNullable().defaultTo(1);
      }),
      sql("block_bounds").insert({ id: 1, lowest_block: 1 }),
      sql.schema.createTable("transactions", (table) => {
        table.string("hash", 66).primary();
        table.bigInteger("block_number").notNullable();
        table.integer("position").notNullable();
        table.binary("body").notNullable();
        table.binary("signature").notNullable();
        rowHash(table);
        // The first 16 bytes of the sender's key, and the 20 of the program's address; null if it concerns no program.
        table.binary("sender");
        table.binary("program");
        table.unique(["block_number", "position"]);
      }),
      sql.raw("CREATE INDEX transactions_of_sender ON transactions (sender, block_number, position)"),
      sql.raw(
        "CREATE INDEX transactions_of_program ON transactions (program, block_number, position) WHERE program IS NOT NULL",
      ),
      sql.schema.createTable("senders", (table) => {
        table.string("identity", 66).primary();
        table.bigInteger("nonce").notNullable();
        rowHash(table);
      }),
      // Two headers with one block number, signed by one key.
      sql.schema.createTable("fork_evidence", (table) => {
        table.string("identity", 66).notNullable();
        table.bigInteger("block_number").notNullable();
        table.binary("header").notNullable();
        table.binary("signature").notNullable();
        table.binary("other_header").notNullable();
        table.binary("other_signature").notNullable();
        table.bigInteger("seen_ms").notNullable();
        // The operator has resolved it.
        table.boolean("settled").notNullable();
        table.primary(["identity", "block_number"]);
      }),
      sql.schema.createTable("writer_lease", (table) => {
        // There is one row, with this 1.
        table.integer("id").primary();
        // Random name that a node draws when it acquires the lease; null before the first.
        table.string("holder", 32);
        table.string("host", 255);
        // The machine of that host whose process number follows.
        table.string("machine", 100);
        table.integer("pid");
        table.bigInteger("since_ms");
        // Increases with each node that acquires the lease.
        table.bigInteger("epoch").notNullable();
        // By the clock of the database.
        table.bigInteger("until_ms").notNullable();
        // Key of the node that owns this database.
        table.string("identity", 66);
      }),
      sql("writer_lease").insert({ id: 1, epoch: 0, until_ms: 0 }),

      sql.schema.createTable("programs", (table) => {
        // In the order of creation: the latest program has the highest.
        table.increments("id");
        table.string("address", 45).notNullable().unique();
        table.string("owner", 66).notNullable();
        table.text("name").notNullable();
        // The name in one case, folded by the node, so that all engines find the same programs.
        table.text("name_folded").notNullable();
        table.string("encoding", 8).notNullable();
        // Type of the document: object, array, string, number, boolean, null or binary.
        table.string("type", 8).notNullable();
        table.string("mode", 16).notNullable();
        // JSON text: {allowed, blacklisted, groups}.
        table.text("access").notNullable();
        table.text("metadata");
        table.integer("size_bytes").notNullable();
        table.bigInteger("created_ms").notNullable();
        table.bigInteger("updated_ms").notNullable();
        table.boolean("deleted").notNullable().defaultTo(false);
        // Whether the document is stored in parts: in the rows of its fields and their chunks.
        table.boolean("in_parts").notNullable().defaultTo(false);
        rowHash(table, "entry_hash");
        rowHash(table, "rest_hash");
        // 64 hex digits.
        table.string("blinding", 64).notNullable().defaultTo("");
        table.index(["owner", "id"]);
        table.index(["name", "id"]);
      }),
      ...schema.createNameIndex.map((statement) => sql.raw(statement)),
      // Apart from programs, so that lists do not read documents. A program without content has no row.
      sql.schema.createTable("program_documents", (table) => {
        table.string("address", 45).primary().references("programs.address");
        // JSON text as written, or a JSON string of base64.
        table.text("data").notNullable();
        rowHash(table);
      }),
      sql.raw(`CREATE TABLE program_fields (
        address varchar(45) NOT NULL REFERENCES programs (address),
        position integer NOT NULL,
        name_json text NOT NULL,
        type varchar(8) NOT NULL,
        items integer,
        size_bytes integer NOT NULL DEFAULT 0,
        text_before text NOT NULL DEFAULT '',
        value text NOT NULL,
        row_hash varchar(32) NOT NULL DEFAULT '',
        PRIMARY KEY (address, position), UNIQUE (address, name_json))${schema.inKeyOrder}`),
      // Text of a large value, which precedes the text in the field's row.
      sql.raw(`CREATE TABLE program_chunks (
        address varchar(45) NOT NULL REFERENCES programs (address),
        field integer NOT NULL,
        position bigint NOT NULL,
        items integer NOT NULL,
        size_bytes integer NOT NULL,
        text text NOT NULL,
        row_hash varchar(32) NOT NULL DEFAULT '',
        PRIMARY KEY (address, field, position))${schema.inKeyOrder}`),
      // Identities besides the owner that may read a program, or may not: the access rule for lists.
      sql.schema.createTable("program_readers", (table) => {
        table.string("address", 45).notNullable().references("programs.address");
        table.string("identity", 66).notNullable();
        table.boolean("allowed").notNullable();
        table.primary(["identity", "address"]);
      }),

      sql.raw(
        `CREATE TABLE commitments (commitment ${schema.bytes} PRIMARY KEY, leaf_index INTEGER NOT NULL)${schema.inKeyOrder}`,
      ),
      // Complete nodes, including leaves: level * 2^21 + position.
      sql.schema.createTable("merkle_nodes", (table) => {
        table.integer("id").primary();
        table.binary("hash").notNullable();
      }),
      sql.schema.createTable("merkle_roots", (table) => {
        table.bigInteger("block_number").primary();
        table.string("root", 66).notNullable().unique();
        table.integer("leaf_count").notNullable();
        // The nodes above both leaves and empty positions, levels 1 to 19, 32 bytes each; zeros where there is none.
        table.binary("edge").notNullable();
        // Time of the block; 0 for block 0.
        table.bigInteger("timestamp_ms").notNullable().defaultTo(0);
        rowHash(table);
        table.index(["timestamp_ms", "block_number"]);
      }),
      sql("merkle_roots").insert(emptyRoot),
      sql.schema.createTable("nullifiers", (table) => {
        table.string("hash", 66).primary();
        table.bigInteger("block_number").notNullable();
        table.string("transaction_hash", 66).notNullable();
        rowHash(table);
      }),

      sql.schema.createTable("tree_pages", (table) => {
        // The program whose fields are in the tree; empty for the state tree.
        table.string("tree", 45).notNullable();
        // Hex digits that all keys of the page start with.
        table.string("path", 64).notNullable();
        table.binary("page").notNullable();
        table.string("row_hash", 32).notNullable();
        table.primary(["tree", "path"]);
      }),
      // State tree pages as they were before one of the latest blocks changed them; null for a page that did not exist.
      sql.schema.createTable("tree_undo", (table) => {
        table.string("path", 64).notNullable();
        table.bigInteger("block_number").notNullable();
        table.binary("page");
        table.string("row_hash", 32);
        table.primary(["path", "block_number"]);
        table.index(["block_number"]);
      }),
      // The snapshot sync in progress: one row while it runs, with this 1.
      sql.schema.createTable("snapshot_join", (table) => {
        table.integer("id").primary();
        table.binary("snapshot").notNullable();
        table.bigInteger("block_number").notNullable();
        // Headers are stored from the latest down to this one.
        table.bigInteger("lowest_header").notNullable();
        // Number of stored leaves of the commitment tree.
        table.integer("leaf_count").notNullable();
      }),
      // Chunks of the snapshot that are stored.
      sql.schema.createTable("snapshot_chunks", (table) => {
        table.integer("chunk").primary();
      }),

      sql.schema.createTable("peers", (table) => {
        // In the order of discovery.
        table.increments("id");
        table.string("endpoint", 300).notNullable().unique();
        table.string("origin", 8).notNullable();
        // The key that the peer proved, and the one that the operator expects.
        table.string("identity", 66);
        table.string("expected_identity", 66);
        table.string("connection_string", 300);
        table.bigInteger("verified_ms");
        table.bigInteger("last_seen_ms");
        table.integer("failures").notNullable();
        table.bigInteger("next_try_ms").notNullable();
      }),
    ],
  },
  {
    name: "pages of the commitment tree",
    convert: packNodes,
    queries: (sql) => [sql.schema.dropTable("merkle_nodes")],
  },
];

/** Steps of the mempool, to which the same rules apply. */
export const mempoolMigrations: readonly Migration[] = [
  {
    name: "pending and rejected transactions",
    queries: (sql) => [
      sql.schema.createTable("pending_transactions", (table) => {
        table.string("hash", 66).primary();
        // Columns for selection; the bytes are read for a block only.
        table.string("sender", 66).notNullable();
        table.bigInteger("nonce").notNullable();
        // As the sender wrote it: any 64-bit integer, in decimal digits.
        table.string("timestamp_ms", 20).notNullable();
        // Source address or range; null for a transaction of this node.
        table.string("origin", 50);
        table.integer("size_bytes").notNullable();
        table.bigInteger("received_ms").notNullable();
        table.bigInteger("expires_ms").notNullable();
        table.binary("bytes").notNullable();
        table.index(["received_ms", "hash"]);
      }),
      sql.schema.createTable("rejected_transactions", (table) => {
        table.string("hash", 66).primary();
        table.text("reason").notNullable();
        table.bigInteger("rejected_ms").notNullable().index();
        table.bigInteger("expires_ms").notNullable().index();
      }),
    ],
  },
  {
    name: "what pending transactions come after",
    queries: (sql) => [
      sql.schema.alterTable("pending_transactions", (table) => {
        // Nonce of the sender's preceding transaction, if the relaying node reported it.
        table.bigInteger("after_nonce");
      }),
    ],
  },
];
