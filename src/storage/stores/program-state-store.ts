/** Reads programs from the database as leaves of the state tree. */
import { runWithoutYielding, yieldToEventLoop } from "../../base/async/yielding.js";
import { inChunks } from "../../db/rows/chunks.js";
import type { Queries, QueryBuilder } from "../../db/queries/database.js";
import { changeTree, type LeafChange, rootOfLeaves } from "../../tree/change.js";
import { stateHashes } from "../../tree/node-hashes.js";
import { clearTrees, createPageStore } from "../../tree/page-store.js";
import { type FieldParts, zeroHash, type ObjectParts } from "../../tree/state-format.js";
import {
  buildFieldsHere,
  type DocumentParts,
  fieldKey,
  fieldsOfObject,
  programLeaf,
} from "../programs/program-state.js";
import { chunksOf, readFull } from "./program-query-store.js";
import type { BuildDocument } from "../programs/programs.js";
import type { ProgramTables } from "./program-tables-store.js";
import {
  checkDocument,
  checkField,
  checkText,
  corruptionOf,
  type FieldRecord,
  joinValue,
  type ProgramRow,
  programColumns,
  readChunks,
  type TextRow,
} from "../programs/stored-program.js";

/** Number of programs read by one query. Each row may include a document of up to 1 MiB. */
const portionRows = 50;

/** Parts of a program that a block changed. */
export interface DirtyProgram {
  /** True if the full document was written. */
  isComplete: boolean;
  /** True if the previous document was stored in parts, and therefore had a field tree. */
  hadTree: boolean;
  /** Text of the document if it is stored in parts and unchanged since it was written in full; otherwise undefined. */
  text: string | undefined;
  /** Names of the changed fields, if the document was not written in full. */
  readonly fields: Set<string>;
}

export interface LeavesOptions {
  /**
   * Resolves when all changes are in the database; by default they already are. Meanwhile, the leaves of programs whose
   * rows are buffered are computed.
   */
  readonly stored?: Promise<void>;
  /** Builds the field trees of documents; by default on the calling thread. */
  readonly build?: BuildDocument;
}

/** Computes the leaves of the programs that a block changed. Addresses without a program have no leaf. */
export async function readLeaves(
  db: Queries,
  { programs, documents }: Pick<ProgramTables, "programs" | "documents">,
  dirty: ReadonlyMap<string, DirtyProgram>,
  { stored = Promise.resolve(), build = buildFieldsHere }: LeavesOptions = {},
): Promise<LeafChange[]> {
  const leaves: LeafChange[] = [];
  const inParts: (ProgramRow & TextRow)[] = [];
  for (const addresses of inChunks([...dirty.keys()], portionRows)) {
    await programs.prefetch(addresses);
    await documents.prefetch(addresses);
    for (const address of addresses) {
      const program = await programs.get(address);
      const row = program && { ...program, ...((await documents.get(address)) ?? { data: null, row_hash: null }) };
      if (row !== undefined && Boolean(row.in_parts)) {
        inParts.push(row);
      } else if (row !== undefined) {
        leaves.push(programLeaf(row, row.deleted ? { kind: "none" } : documentOfText(row, checkDocument(row, row))));
      }
      // Yields, so that the database driver can start its next statement once the last one has finished.
      await yieldToEventLoop();
    }
  }
  await stored;
  await clearTrees(
    db,
    [...dirty].filter(([, { hadTree }]) => hadTree).map(([address]) => address),
  );
  for (const row of inParts) {
    const { isComplete, text, fields } = dirty.get(row.address)!;
    const object = await (isComplete ? writeFields(db, row, text, build) : changeFields(db, row, fields));
    leaves.push(programLeaf(row, { kind: "object", ...object }));
  }
  return leaves;
}

/** Returns true if a program exists or existed at this address. */
export async function wasCreated(db: Queries, address: string): Promise<boolean> {
  return (await db.first((sql) => sql("programs").where({ address }).select("id"))) !== undefined;
}

/** Selects the rows of programs, `p`, deleted or not, with the texts of their documents. */
export function selectPrograms(sql: QueryBuilder) {
  return sql("programs as p")
    .leftJoin("program_documents as d", "d.address", "p.address")
    .select([...programColumns.map((name) => `p.${name}`), "d.data", "d.row_hash"]);
}

/** Returns the hashed parts of a document that is stored as one text. */
export function documentOfText({ type }: ProgramRow, text: string | undefined): DocumentParts {
  if (text === undefined) {
    return { kind: "none" };
  }
  if (type !== "object") {
    return { kind: "text", text };
  }
  const { leaves, lastKey, tailHash } = runWithoutYielding(fieldsOfObject(text));
  return { kind: "object", fieldsRoot: rootOfLeaves(leaves), lastKey, tailHash };
}

/** Builds and stores the field tree of a document in parts. */
async function writeFields(
  db: Queries,
  { address, size_bytes: sizeBytes }: ProgramRow,
  known: string | undefined,
  build: BuildDocument,
): Promise<ObjectParts> {
  const text = known ?? (await readFull(db, address, sizeBytes));
  const { pages, ...object } = await build(address, text);
  await createPageStore(db, address).saveTexts(pages);
  return object;
}

/** Updates the field tree of a document in parts for the fields that changed. */
async function changeFields(db: Queries, row: ProgramRow & TextRow, names: ReadonlySet<string>): Promise<ObjectParts> {
  const store = createPageStore(db, row.address);
  const changes: LeafChange[] = [];
  for (const name of names) {
    const field = await readFieldParts(db, row.address, name);
    changes.push({ key: fieldKey(name), valueHash: field && stateHashes.field(field) });
  }
  const { root, pages } = await changeTree(store.load, changes);
  await store.save(pages);
  return { fieldsRoot: root, ...(await readEnd(db, row)) };
}

/** Returns the hashed parts of the end of a document in parts: the key of its last field, and the hash of its tail. */
export async function readEnd(
  db: Queries,
  row: ProgramRow & TextRow,
): Promise<Pick<ObjectParts, "lastKey" | "tailHash">> {
  const { address } = row;
  const tail = checkText(address, row);
  if (tail === undefined) {
    throw corruptionOf(address, "document");
  }
  return { lastKey: await keyBefore(db, address, undefined), tailHash: stateHashes.text(tail) };
}

/** Reads the hashed parts of a field of a document in parts; undefined if there is no such field. */
export async function readFieldParts(db: Queries, address: string, name: string): Promise<FieldParts | undefined> {
  const name_json = JSON.stringify(name);
  const [row] = await db.rows<FieldRecord & { readonly chunks: string }>((sql) =>
    sql.raw(
      `SELECT f.address, f.position, f.name_json, f.type, f.text_before, f.value, f.size_bytes, f.items, f.row_hash,
          ${chunksOf(db.dialect, "f.address", "f.position")} AS chunks
        FROM program_fields f WHERE f.address = ? AND f.name_json = ?`,
      [address, name_json],
    ),
  );
  if (row === undefined) {
    return undefined;
  }
  const field = checkField(address, row);
  return {
    before: field.text_before,
    previousKey: await keyBefore(db, address, field.position),
    value: joinValue(address, field, readChunks(address, row.chunks)),
  };
}

/** Returns the key of the last field before a position, or of the document's last field. */
async function keyBefore(db: Queries, address: string, position: number | undefined): Promise<Uint8Array> {
  const row = await db.first<{ name_json: string }>((sql) => {
    const fields = sql("program_fields").where({ address });
    return (position === undefined ? fields : fields.where("position", "<", position))
      .orderBy("position", "desc")
      .limit(1)
      .select("name_json");
  });
  return row === undefined ? zeroHash : stateHashes.fieldKey(row.name_json);
}
