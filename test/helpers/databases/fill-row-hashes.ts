/** Fills in the checksums of rows in a seeded database. */
import type { Queries } from "../../../src/db/queries/database.js";
import {
  type BlockColumns,
  type ChunkColumns,
  type DocumentColumns,
  type FieldColumns,
  hashBlockRow,
  hashChunkRow,
  hashDocumentRow,
  hashFieldRow,
  hashNullifierRow,
  hashProgramEntry,
  hashProgramRest,
  hashRootRow,
  hashSenderRow,
  hashTransactionRow,
  type NullifierColumns,
  type ProgramEntryColumns,
  type ProgramRestColumns,
  type RootColumns,
  type SenderColumns,
  type TransactionColumns,
} from "../../../src/db/rows/row-hashes.js";

/** A table with checksums. */
interface HashedTable<Row = never> {
  readonly table: string;
  /** A unique key. */
  readonly key: Readonly<Record<string, "text" | "bigint">>;
  /** The other columns that the checksums cover. */
  readonly columns: readonly string[];
  /** Functions that compute the checksums, by column. */
  readonly hashes: Readonly<Record<string, (row: Row) => string>>;
  /** Number of rows to read at a time; small if a row may have 1 MiB. */
  readonly portion: number;
}

const tables: readonly HashedTable[] = [
  {
    table: "blocks",
    key: { number: "bigint" },
    columns: ["hash", "previous_hash", "timestamp_ms", "signature"],
    hashes: { row_hash: (row: BlockColumns) => hashBlockRow(row) },
    portion: 500,
  },
  {
    table: "transactions",
    key: { hash: "text" },
    columns: ["block_number", "position", "signature"],
    hashes: { row_hash: (row: TransactionColumns) => hashTransactionRow(row) },
    portion: 500,
  },
  {
    table: "senders",
    key: { identity: "text" },
    columns: ["nonce"],
    hashes: { row_hash: (row: SenderColumns) => hashSenderRow(row) },
    portion: 500,
  },
  {
    table: "programs",
    key: { address: "text" },
    // A column of a later step has a part in the checksum as soon as it is there.
    columns: ["*"],
    hashes: {
      entry_hash: (row: ProgramEntryColumns) => hashProgramEntry(row),
      rest_hash: (row: ProgramRestColumns) => hashProgramRest(row),
    },
    portion: 100,
  },
  {
    table: "program_documents",
    key: { address: "text" },
    columns: ["data"],
    hashes: { row_hash: (row: DocumentColumns) => hashDocumentRow(row) },
    portion: 20,
  },
  {
    table: "program_fields",
    key: { address: "text", position: "bigint" },
    columns: ["name_json", "type", "items", "size_bytes", "text_before", "value"],
    hashes: { row_hash: (row: FieldColumns) => hashFieldRow(row) },
    portion: 200,
  },
  {
    table: "program_chunks",
    key: { address: "text", field: "bigint", position: "bigint" },
    columns: ["items", "size_bytes", "text"],
    hashes: { row_hash: (row: ChunkColumns) => hashChunkRow(row) },
    portion: 100,
  },
  {
    table: "merkle_roots",
    key: { block_number: "bigint" },
    columns: ["root", "timestamp_ms", "leaf_count", "edge"],
    hashes: { row_hash: (row: RootColumns) => hashRootRow(row) },
    portion: 500,
  },
  {
    table: "nullifiers",
    key: { hash: "text" },
    columns: ["block_number", "transaction_hash"],
    hashes: { row_hash: (row: NullifierColumns) => hashNullifierRow(row) },
    portion: 500,
  },
];

/** Fills in the checksums of every row. */
export async function fillRowHashes(db: Queries): Promise<void> {
  for (const table of tables) {
    await fillTable(db, table as HashedTable<Readonly<Record<string, string | number>>>);
  }
}

type Row = Readonly<Record<string, string | number>>;

async function fillTable(db: Queries, given: HashedTable<Row>): Promise<void> {
  const { table, key, columns, hashes, portion } = given;
  const { list } = db.dialect;
  const keys = Object.keys(key);
  const names = Object.keys(hashes);
  const values = [...keys, ...names].map((_, i) => `k.value ->> ${i}`);
  const update = `UPDATE ${table} SET ${names.map((name, i) => `${name} = ${values[keys.length + i]!}`).join(", ")}
    FROM ${list.table} WHERE ${keys.map((name, i) => `${table}.${name} = CAST(${values[i]!} AS ${key[name]!})`).join(" AND ")}`;
  let after: Row | undefined;
  for (;;) {
    const last = after;
    const rows = await db.rows<Row>((sql) => {
      const query = sql(table)
        .select([...keys, ...columns])
        .orderBy(keys)
        .limit(portion);
      return last === undefined
        ? query
        : query.whereRaw(
            `(${keys.join(", ")}) > (${keys.map(() => "?").join(", ")})`,
            keys.map((name) => last[name]!),
          );
    });
    after = rows.at(-1);
    if (after === undefined) {
      return;
    }
    const made = rows.map((row) => [...keys.map((name) => row[name]), ...names.map((name) => hashes[name]!(row))]);
    await db.run((sql) => sql.raw(update, [JSON.stringify(made)]));
  }
}
