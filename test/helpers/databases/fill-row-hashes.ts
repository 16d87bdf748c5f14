/** Fills in the checksums of rows in a seeded database. */
import type { Queries } from "../../../src/db/queries/database.js";
import {
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
} from "../../../src/db/rows/row-hashes.js";

type Row = Readonly<Record<string, string | number>>;

/** The unique key of a table with its types, and functions that compute its checksums, by column. */
type HashedTable = readonly [
  table: string,
  key: Readonly<Record<string, "text" | "bigint">>,
  hashes: Readonly<Record<string, (row: never) => string>>,
];

const tables: readonly HashedTable[] = [
  ["blocks", { number: "bigint" }, { row_hash: hashBlockRow }],
  ["transactions", { hash: "text" }, { row_hash: hashTransactionRow }],
  ["senders", { identity: "text" }, { row_hash: hashSenderRow }],
  ["programs", { address: "text" }, { entry_hash: hashProgramEntry, rest_hash: hashProgramRest }],
  ["program_documents", { address: "text" }, { row_hash: hashDocumentRow }],
  ["program_fields", { address: "text", position: "bigint" }, { row_hash: hashFieldRow }],
  ["program_chunks", { address: "text", field: "bigint", position: "bigint" }, { row_hash: hashChunkRow }],
  ["merkle_roots", { block_number: "bigint" }, { row_hash: hashRootRow }],
  ["nullifiers", { hash: "text" }, { row_hash: hashNullifierRow }],
];

/** The number of rows to read at a time; a row may have 1 MiB. */
const portion = 100;

/** Gives rows that were changed by hand the checksums that they would have if they had been stored so. */
export async function fillRowHashes(db: Queries): Promise<void> {
  for (const table of tables) {
    await fillTable(db, table);
  }
}

async function fillTable(db: Queries, [table, key, hashes]: HashedTable): Promise<void> {
  const keys = Object.keys(key);
  const names = Object.keys(hashes);
  const valueOf = (i: number): string => `k.value ->> ${i}`;
  const set = names.map((name, i) => `${name} = ${valueOf(keys.length + i)}`).join(", ");
  const where = keys.map((name, i) => `${table}.${name} = CAST(${valueOf(i)} AS ${key[name]!})`).join(" AND ");
  const update = `UPDATE ${table} SET ${set} FROM ${db.dialect.list.table} WHERE ${where}`;
  const isAfter = `(${keys.join(", ")}) > (${keys.map(() => "?").join(", ")})`;
  let last: Row | undefined;
  do {
    const after = last;
    const rows = await db.rows<Row>((sql) => {
      const query = sql(table).select("*").orderBy(keys).limit(portion);
      return after === undefined
        ? query
        : query.whereRaw(
            isAfter,
            keys.map((name) => after[name]!),
          );
    });
    const made = rows.map((row) => [
      ...keys.map((name) => row[name]),
      ...names.map((name) => hashes[name]!(row as never)),
    ]);
    await db.run((sql) => sql.raw(update, [JSON.stringify(made)]));
    last = rows.at(-1);
  } while (last !== undefined);
}
