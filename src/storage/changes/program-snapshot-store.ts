/** Exports storage programs from a database to a snapshot, and imports them into another database. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  SnapshotLayoutSchema,
  SnapshotProgram,
  SnapshotProgramSchema,
} from "../../../gen/gatehouse/peer/v1/snapshot_pb.js";
import type { Queries } from "../../db/queries/database.js";
import { bulkInsert, type BulkValue, type ColumnKind } from "../../db/rows/bulk-changes.js";
import {
  hashChunkRow,
  hashDocumentRow,
  hashFieldRow,
  hashProgramEntry,
  hashProgramRest,
} from "../../db/rows/row-hashes.js";
import type { ChangedTree } from "../../tree/change.js";
import { createPageStore } from "../../tree/page-store.js";
import type { Leaf } from "../../tree/path.js";
import { readRoot } from "../../tree/read-root.js";
import { namedReaders } from "../programs/access.js";
import { buildFields, programLeaf } from "../programs/program-state.js";
import { foldName } from "../programs/programs.js";
import { readParts } from "../stores/program-query-store.js";
import { documentOfText, readEnd, selectPrograms } from "../stores/program-state-store.js";
import { programShapes } from "../stores/program-tables-store.js";
import { InvalidProgram, readProgram, type RestoredProgram } from "./restored-program.js";
import {
  checkDocument,
  checkProgram,
  joinParts,
  type PartsRow,
  type ProgramRow,
  readChunks,
  readFields,
  type TextRow,
} from "../programs/stored-program.js";

export interface ProgramOfSnapshot {
  readonly leaf: Leaf;
  readonly program: MessageInitShape<typeof SnapshotProgramSchema>;
}

type ExportedRow = ProgramRow & TextRow & { readonly id: number };

/** Number of programs read by one query. Each row may include a document of up to 1 MiB. */
const portionRows = 50;

/** Yields all programs in portions, in the order of their creation. */
export async function* exportPrograms(db: Queries): AsyncGenerator<readonly ProgramOfSnapshot[], void> {
  let last = 0;
  let position = 0;
  for (;;) {
    const after = last;
    const rows = await db.rows<ExportedRow>((sql) =>
      selectPrograms(sql).select("p.id").where("p.id", ">", after).orderBy("p.id").limit(portionRows),
    );
    if (rows.length === 0) {
      return;
    }
    last = rows.at(-1)!.id;
    const portion: ProgramOfSnapshot[] = [];
    for (const row of rows) {
      position++;
      portion.push(await exportProgram(db, row, position));
    }
    yield portion;
  }
}

/** Estimates the size of all programs in a snapshot, in bytes. */
export async function estimateProgramBytes(db: Queries): Promise<number> {
  const [row] = await db.rows<{ bytes: number | null; programs: number }>((sql) =>
    sql("programs").sum({ bytes: "size_bytes" }).count({ programs: "*" }),
  );
  return (row?.bytes ?? 0) + 600 * (row?.programs ?? 0);
}

async function exportProgram(db: Queries, row: ExportedRow, position: number): Promise<ProgramOfSnapshot> {
  const { address: storageAddress } = row;
  checkProgram(storageAddress, row);
  const common = { storageAddress, place: position, updatedMs: BigInt(row.updated_ms) };
  if (row.deleted) {
    return { leaf: programLeaf(row, { kind: "none" }), program: { ...common, deleted: true } };
  }
  const { document, data, layout } = await exportDocument(db, row);
  const { owner, name, encoding, mode, access } = row;
  return {
    leaf: programLeaf(row, document),
    program: {
      ...common,
      ...{ owner, name, encoding, mode, access, data, layout },
      createdMs: BigInt(row.created_ms),
      blinding: Buffer.from(row.blinding, "hex"),
      metadata: row.metadata ?? undefined,
    },
  };
}

async function exportDocument(db: Queries, row: ExportedRow) {
  const { address } = row;
  if (!row.in_parts) {
    const data = checkDocument(row, row);
    return { document: documentOfText(row, data), data, layout: undefined };
  }
  const parts = await readParts(db, address);
  const text = await joinParts(address, parts, row.size_bytes);
  const document = {
    kind: "object",
    fieldsRoot: await readRoot(createPageStore(db, address).load),
    ...(await readEnd(db, row)),
  } as const;
  return { document, data: text, layout: layoutOf(address, parts) };
}

/** Returns the positions of the fields and chunks of a document in parts, and the lengths of the chunks. */
function layoutOf(address: string, parts: PartsRow): MessageInitShape<typeof SnapshotLayoutSchema> {
  const chunks = readChunks(address, parts.chunks);
  const pieces = new Map<number, { position: bigint; length: number }[]>(chunks.map(({ field }) => [field, []]));
  for (const { field, position, text } of chunks) {
    pieces.get(field)!.push({ position: BigInt(position), length: text.length });
  }
  const fields = Array.from(readFields(address, parts.fields), ({ position }) => ({
    position,
    pieces: pieces.get(position) ?? [],
  }));
  return { fields };
}

/**
 * Program decoded from a snapshot, with the leaf computed from it. The caller must have compared the leaf with the
 * snapshot before the import.
 */
export interface CheckedProgram extends RestoredProgram {
  readonly leaf: Leaf;
  /** Pages of the tree of its fields; empty unless the document is stored in parts. */
  readonly pages: ChangedTree["pages"];
}

/** @throws InvalidProgram */
export async function checkRestored(program: SnapshotProgram): Promise<CheckedProgram> {
  const restored = readProgram(program);
  const { row, text } = restored;
  if (row.in_parts) {
    const { pages, ...object } = await buildFields(text!);
    return { ...restored, leaf: programLeaf(row, { kind: "object", ...object }), pages };
  }
  return { ...restored, leaf: programLeaf(row, documentOfText(row, text)), pages: new Map() };
}

/** @throws InvalidProgram if a program exists already, or if two have the same address or position. */
export async function importPrograms(db: Queries, programs: readonly CheckedProgram[]): Promise<void> {
  const insert = async <Row extends object>(
    { name, columns }: { readonly name: string; readonly columns: Readonly<Record<keyof Row & string, ColumnKind>> },
    rows: readonly Row[],
  ): Promise<number> => {
    const names = Object.keys(columns) as (keyof Row)[];
    const values = rows.map((row) => names.map((column) => row[column] as BulkValue));
    return await bulkInsert(db, name, columns, values);
  };
  const { name, columns } = programShapes.programs;
  const inserted = await insert({ name, columns: { id: "integer", ...columns } }, programs.map(programRow));
  if (inserted !== programs.length) {
    throw new InvalidProgram("Two programs have the same address or position.");
  }
  await insert(programShapes.documents, programs.flatMap(documentRows));
  await insert(
    programShapes.fields,
    programs.flatMap(({ fields }) => fields.map((field) => ({ ...field, row_hash: hashFieldRow(field) }))),
  );
  await insert(
    programShapes.chunks,
    programs.flatMap(({ chunks }) => chunks.map((chunk) => ({ ...chunk, row_hash: hashChunkRow(chunk) }))),
  );
  await insert(programShapes.readers, programs.flatMap(readerRows));
  for (const { row, pages } of programs) {
    await createPageStore(db, row.address).save(pages);
  }
}

function programRow({ index, row }: RestoredProgram) {
  const hashes = { entry_hash: hashProgramEntry(row), rest_hash: hashProgramRest(row) };
  return { id: index, ...row, name_folded: foldName(row.name), ...hashes };
}

function documentRows({ row: { address }, data }: RestoredProgram) {
  return data === undefined ? [] : [{ address, data, row_hash: hashDocumentRow({ address, data }) }];
}

function readerRows({ row: { address }, access }: RestoredProgram) {
  return access === undefined
    ? []
    : [...namedReaders(access)].map(([identity, allowed]) => ({ address, identity, allowed }));
}

/** Makes the database assign ids to new programs after those of the imported programs. */
export async function advanceProgramIds(db: Queries): Promise<void> {
  const { advanceSequence } = db.dialect;
  if (advanceSequence !== undefined) {
    await db.run((sql) => sql.raw(advanceSequence("programs", "id")));
  }
}

/**
 * Returns true if there are exactly `count` programs, at positions 1 to `count`, and no program was created earlier
 * than its predecessor.
 */
export async function areInCreationOrder(db: Queries, count: number): Promise<boolean> {
  const [row] = await db.rows<{ rows: number; last: number | null }>((sql) =>
    sql("programs").count({ rows: "*" }).max({ last: "id" }),
  );
  const [early] = await db.rows((sql) =>
    sql.raw(
      `SELECT 1 FROM (SELECT created_ms, lag(created_ms) OVER (ORDER BY id) AS before FROM programs WHERE NOT deleted) AS p
        WHERE created_ms < before LIMIT 1`,
    ),
  );
  return row!.rows === count && (row!.last ?? 0) === count && early === undefined;
}

/** Deletes all programs with their documents and access entries. */
export async function clearPrograms(db: Queries): Promise<void> {
  const tables = ["program_readers", "program_chunks", "program_fields", "program_documents", "programs"];
  const { clearNameIndex } = db.dialect;
  await db.runAll((sql) => [
    ...tables.map((table) => sql(table).delete()),
    ...(clearNameIndex === undefined ? [] : [sql.raw(clearNameIndex)]),
  ]);
}
