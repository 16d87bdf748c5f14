/**
 * The schema, as the steps that lead to it. A step that was released is never changed; a new one is added at the end.
 *
 * Column types are those that SQLite and PostgreSQL share. Names of fields are kept as JSON text (with their quotes):
 * a name may hold any character, NUL included, which no text column of PostgreSQL takes as it is.
 */
import { DatabaseError } from "../queries/database.js";
import type { Migration } from "./migration.js";
import { rowHashMigration } from "./row-hash-migration.js";

/** All steps, oldest first; the version of the schema is their number. */
export const migrations: readonly Migration[] = [
  {
    name: "chain, storage programs, commitment tree",
    queries: (sql, words) => [
      sql.schema.createTable("blocks", (table) => {
        table.bigInteger("number").primary();
        table.string("hash", 66).notNullable().unique();
        table.string("previous_hash", 66);
        table.bigInteger("timestamp_ms").notNullable();
        // Block 0: the text of the genesis file.
        table.text("genesis");
      }),
      sql.schema.createTable("mempool", (table) => {
        table.string("hash", 66).primary();
        table.binary("bytes").notNullable();
        table.bigInteger("received_ms").notNullable();
      }),
      sql.schema.createTable("programs", (table) => {
        // In the order of creation: what is newest has the highest.
        table.increments("id");
        table.string("address", 45).notNullable().unique();
        table.string("owner", 66).notNullable();
        table.text("name").notNullable();
        // The name in one case, folded by the node so that every engine finds the same.
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
        table.index(["owner", "id"]);
        table.index(["name", "id"]);
      }),
      ...words.indexNames.map((statement) => sql.raw(statement)),
      // Apart from programs, so that lists never read past documents. A program that holds nothing has no row.
      sql.schema.createTable("program_documents", (table) => {
        table.string("address", 45).primary().references("programs.address");
        // JSON text as it was written, or a JSON string of base64.
        table.text("data").notNullable();
      }),
      sql.schema.createTable("program_fields", (table) => {
        table.string("address", 45).notNullable().references("programs.address");
        table.text("name_json").notNullable();
        table.integer("position").notNullable();
        table.string("type", 8).notNullable();
        table.text("value").notNullable();
        table.primary(["address", "name_json"]);
      }),
      // Who may read a program or not, beside its owner: the access rule for lists.
      sql.schema.createTable("program_readers", (table) => {
        table.string("address", 45).notNullable().references("programs.address");
        table.string("identity", 66).notNullable();
        table.boolean("allowed").notNullable();
        table.primary(["identity", "address"]);
      }),
      sql.schema.createTable("merkle_nodes", (table) => {
        table.integer("level").notNullable();
        table.integer("position").notNullable();
        table.binary("hash").notNullable();
        table.primary(["level", "position"]);
      }),
      sql.schema.createTable("merkle_roots", (table) => {
        table.bigInteger("block_number").primary();
        table.string("root", 66).notNullable();
        table.integer("leaf_count").notNullable();
      }),
      sql.schema.createTable("commitments", (table) => {
        table.string("commitment", 66).primary();
        table.integer("leaf_index").notNullable().unique();
      }),
      sql.schema.createTable("nullifiers", (table) => {
        table.string("hash", 66).primary();
        table.bigInteger("block_number").notNullable();
        table.string("transaction_hash", 66).notNullable();
      }),
    ],
  },
  {
    name: "transactions and signed blocks",
    queries: (sql) => [
      sql.schema.alterTable("blocks", (table) => {
        // As it was signed; block 0 has neither.
        table.binary("header");
        table.binary("signature");
      }),
      sql.schema.createTable("transactions", (table) => {
        table.string("hash", 66).primary();
        table.bigInteger("block_number").notNullable();
        table.integer("position").notNullable();
        table.binary("body").notNullable();
        table.binary("signature").notNullable();
        table.unique(["block_number", "position"]);
      }),
      // Turned away when a block was made; the newest are kept.
      sql.schema.createTable("rejected_transactions", (table) => {
        table.string("hash", 66).primary();
        table.text("reason").notNullable();
        table.bigInteger("rejected_ms").notNullable().index();
      }),
      sql.schema.createTable("senders", (table) => {
        table.string("identity", 66).primary();
        table.bigInteger("nonce").notNullable();
      }),
    ],
  },
  {
    name: "a commitment tree that grows",
    queries: (sql, words) => [
      // Nothing could be in them so far: no transaction led there.
      ...["merkle_nodes", "merkle_roots", "commitments"].map((table) => sql.schema.dropTable(table)),
      sql.raw(
        `CREATE TABLE commitments (commitment ${words.bytes} PRIMARY KEY, leaf_index INTEGER NOT NULL)${words.inOrderOfKey}`,
      ),
      // The complete nodes, leaves among them: level * 2^21 + position.
      sql.schema.createTable("merkle_nodes", (table) => {
        table.integer("id").primary();
        table.binary("hash").notNullable();
      }),
      sql.schema.createTable("merkle_roots", (table) => {
        table.bigInteger("block_number").primary();
        table.string("root", 66).notNullable().unique();
        table.integer("leaf_count").notNullable();
        // The nodes above both leaves and empty places, levels 1 to 19, 32 bytes each; zeros where there is none.
        table.binary("edge").notNullable();
      }),
      sql("merkle_roots").insert({
        block_number: 0,
        root: "0x2134e76ac5d21aab186c2be1dd8f84ee880a1e46eaf712f9d371b6df22191f3e",
        leaf_count: 0,
        edge: Buffer.alloc(19 * 32),
      }),
    ],
  },
  {
    name: "peers, and transactions that are handed on",
    queries: (sql) => [
      sql.schema.createTable("peers", (table) => {
        // The order in which the node heard of them.
        table.increments("id");
        table.string("endpoint", 300).notNullable().unique();
        table.string("origin", 8).notNullable();
        // The key that it proved, or the one that the operator expects of it.
        table.string("identity", 66);
        table.string("expected_identity", 66);
        table.string("connection_string", 300);
        table.bigInteger("verified_ms");
        table.bigInteger("last_seen_ms");
        table.integer("failures").notNullable();
        table.bigInteger("next_try_ms").notNullable();
      }),
      sql.schema.alterTable("mempool", (table) => {
        // When it was last handed to an authority, and to a peer that is none.
        table.bigInteger("authority_ms").notNullable().defaultTo(0);
        table.bigInteger("peer_ms").notNullable().defaultTo(0);
      }),
      sql.schema.alterTable("mempool", (table) => {
        table.index(["received_ms", "hash"]);
      }),
    ],
  },
  {
    name: "when roots became current",
    queries: (sql) => [
      sql.schema.alterTable("merkle_roots", (table) => {
        // Time of its block. That of block 0 is never asked for: no root was before it.
        table.bigInteger("timestamp_ms").notNullable().defaultTo(0);
      }),
      sql.raw(`UPDATE merkle_roots
        SET timestamp_ms = (SELECT timestamp_ms FROM blocks WHERE number = merkle_roots.block_number)
        WHERE block_number > 0`),
      sql.schema.alterTable("merkle_roots", (table) => {
        table.index(["timestamp_ms", "block_number"]);
      }),
    ],
  },
  {
    name: "documents in parts",
    queries: (sql, words) => [
      sql.schema.alterTable("programs", (table) => {
        // Whether the document is kept in parts: its text is then that of its fields, and what follows them.
        table.boolean("in_parts").notNullable().defaultTo(false);
      }),
      // Made anew in the order in which documents are read; there are no fields yet.
      sql.schema.dropTable("program_fields"),
      sql.raw(`CREATE TABLE program_fields (
        address varchar(45) NOT NULL REFERENCES programs (address),
        position integer NOT NULL,
        name_json text NOT NULL,
        type varchar(8) NOT NULL,
        items integer,
        size_bytes integer NOT NULL DEFAULT 0,
        text_before text NOT NULL DEFAULT '',
        value text NOT NULL,
        PRIMARY KEY (address, position), UNIQUE (address, name_json))${words.inOrderOfKey}`),
      // The text of a large value, before that which its field's row holds.
      sql.raw(`CREATE TABLE program_chunks (
        address varchar(45) NOT NULL REFERENCES programs (address),
        field integer NOT NULL,
        position bigint NOT NULL,
        items integer NOT NULL,
        size_bytes integer NOT NULL,
        text text NOT NULL,
        PRIMARY KEY (address, field, position))${words.inOrderOfKey}`),
    ],
  },
  {
    name: "a mempool of its own",
    // What waits for a block is another part of the database.
    queries: (sql) => ["mempool", "rejected_transactions"].map((table) => sql.schema.dropTable(table)),
  },
  {
    name: "evidence of forks",
    queries: (sql) => [
      // Two headers of one number that one key has signed.
      sql.schema.createTable("fork_evidence", (table) => {
        table.string("identity", 66).notNullable();
        table.bigInteger("block_number").notNullable();
        table.binary("header").notNullable();
        table.binary("signature").notNullable();
        table.binary("other_header").notNullable();
        table.binary("other_signature").notNullable();
        table.bigInteger("seen_ms").notNullable();
        // The operator has dealt with it.
        table.boolean("settled").notNullable();
        table.primary(["identity", "block_number"]);
      }),
    ],
  },
  rowHashMigration,
  {
    name: "one writer",
    queries: (sql) => [
      sql.schema.createTable("writer_lease", (table) => {
        // There is one row, with this 1.
        table.integer("id").primary();
        // Made anew by each node that takes it; none before the first.
        table.string("holder", 32);
        table.string("host", 255);
        // What of that host the process number is one of.
        table.string("machine", 100);
        table.integer("pid");
        table.bigInteger("since_ms");
        // Grows with each node that takes it.
        table.bigInteger("epoch").notNullable();
        // By the clock of the database.
        table.bigInteger("until_ms").notNullable();
        // The key of the node whose database this is.
        table.string("identity", 66);
      }),
      sql("writer_lease").insert({ id: 1, epoch: 0, until_ms: 0 }),
    ],
  },
  {
    name: "state tree",
    queries: (sql) => [
      sql.schema.alterTable("programs", (table) => {
        // 64 hex digits; nothing is in the table yet.
        table.string("blinding", 64).notNullable().defaultTo("");
      }),
      sql.schema.createTable("tree_pages", (table) => {
        // The program whose fields it has; empty for the tree of the state.
        table.string("tree", 45).notNullable();
        // Hex digits that the keys below it begin with.
        table.string("path", 64).notNullable();
        table.binary("page").notNullable();
        table.string("row_hash", 32).notNullable();
        table.primary(["tree", "path"]);
      }),
      // What pages of the state tree were before one of the last blocks changed them; nothing where one was not there.
      sql.schema.createTable("tree_undo", (table) => {
        table.string("path", 64).notNullable();
        table.bigInteger("block_number").notNullable();
        table.binary("page");
        table.string("row_hash", 32);
        table.primary(["path", "block_number"]);
        table.index(["block_number"]);
      }),
    ],
    async fill(db) {
      if ((await db.first((sql) => sql("blocks").where("number", ">", 0).select("number"))) !== undefined) {
        throw new DatabaseError(
          "The database holds a chain of an older format, whose headers say nothing of the state, and which this version " +
            "cannot go on with; start with another --data-dir or --database, and keep this one for the version that wrote it.",
        );
      }
    },
  },
  {
    name: "snapshots, and blocks without transactions",
    queries: (sql) => [
      sql.schema.createTable("block_bounds", (table) => {
        // There is one row, with this 1.
        table.integer("id").primary();
        // The oldest block whose transactions are kept.
        table.bigInteger("lowest_block").notNullable();
      }),
      sql("block_bounds").insert({ id: 1, lowest_block: 1 }),
      // The snapshot that is being taken in, as long as it is: one row then, with this 1.
      sql.schema.createTable("snapshot_join", (table) => {
        table.integer("id").primary();
        table.binary("snapshot").notNullable();
        table.bigInteger("block_number").notNullable();
        // Headers are stored from the newest down to this one.
        table.bigInteger("lowest_header").notNullable();
        // Leaves of the commitment tree that are stored.
        table.integer("leaf_count").notNullable();
      }),
      // Chunks of it that are stored.
      sql.schema.createTable("snapshot_chunks", (table) => {
        table.integer("chunk").primary();
      }),
    ],
  },
  {
    name: "transactions by who sent them and what they change",
    queries: (sql) => [
      sql.schema.alterTable("transactions", (table) => {
        // The first 16 bytes of the key, and the 20 of the address. None where the transaction was stored before this step; no program where it is about none.
        table.binary("sender");
        table.binary("program");
      }),
      sql.raw("CREATE INDEX transactions_of_sender ON transactions (sender, block_number, position)"),
      sql.raw(
        "CREATE INDEX transactions_of_program ON transactions (program, block_number, position) WHERE program IS NOT NULL",
      ),
      sql.schema.alterTable("block_bounds", (table) => {
        // The oldest block whose transactions have both.
        table.bigInteger("indexed_from").notNullable().defaultTo(1);
      }),
      sql.raw(`UPDATE block_bounds SET indexed_from = (SELECT coalesce(max(number), 0) + 1 FROM blocks)`),
    ],
  },
];
