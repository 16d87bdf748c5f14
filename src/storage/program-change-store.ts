/** Changes of storage programs in the database. */
import { inChunks } from "../db/chunks.js";
import type { Queries } from "../db/database.js";
import { hashProgramEntry, hashProgramRest } from "../db/row-hashes.js";
import { type AccessRule, namedReaders } from "./access.js";
import { isKeptInParts, writeContent } from "./document-writing.js";
import { createDocumentRows } from "./program-document-store.js";
import { type DocumentRows, foldName, type ProgramChanges, type ProgramContent } from "./programs.js";
import { checkProgram, programColumns, type ProgramRow, toRecord } from "./stored-program.js";
import { readLeaves } from "./program-state-store.js";
import { createTouched } from "./touched.js";
import type { Work } from "./work.js";

/** Builds the changes, inside the transaction of a block. */
export function createProgramChanges(db: Queries): ProgramChanges {
  const rows = createOwnRows(db);
  const touched = createTouched();
  const documentRows = (address: string, work: Work): DocumentRows =>
    touched.track(address, createDocumentRows(db, address, work));
  const deleteReaders = async (address: string, work: Work): Promise<void> =>
    work.touchRows((await db.run((sql) => sql("program_readers").where({ address }).delete())) as number);

  return {
    async find(address, work) {
      const row = await rows.find(address);
      work.touchRows(1);
      if (row === undefined) {
        return undefined;
      }
      work.touch(row.access);
      const { encoding, type, access, sizeBytes } = toRecord(row);
      return { address, encoding, type, access, sizeBytes, inParts: Boolean(row.in_parts) };
    },

    async wasMade(address) {
      return (await db.first((sql) => sql("programs").where({ address }).select("id"))) !== undefined;
    },

    async insert({ address, name, access, content, metadata, blinding }, timeMs, work) {
      touched.program(address);
      const columns = accessColumns(access);
      work.touchRows(1);
      [name, columns.access, metadata ?? ""].forEach((text) => work.touch(text));
      const row = {
        address,
        owner: access.owner,
        name,
        ...contentColumns(content),
        ...columns,
        metadata: metadata ?? null,
        blinding,
        created_ms: timeMs,
        updated_ms: timeMs,
        deleted: false,
      };
      const hashes = { entry_hash: hashProgramEntry(row), rest_hash: hashProgramRest(row) };
      await db.run((sql) => sql("programs").insert({ ...row, name_folded: foldName(name), ...hashes }));
      await insertReaders(db, address, access, work);
      if (content !== undefined) {
        await writeContent(documentRows(address, work), content);
      }
    },

    async replaceContent(program, content, timeMs, work) {
      const document = documentRows(program.address, work);
      await document.clear(program);
      await rows.update(program.address, contentColumns(content), timeMs, work);
      if (content !== undefined) {
        await writeContent(document, content);
      }
    },

    async changeDocument(address, change, timeMs, work) {
      const { sizeBytes, inParts } = await change(documentRows(address, work));
      await rows.update(address, { type: "object", size_bytes: sizeBytes, in_parts: inParts }, timeMs, work);
    },

    async setAccess(address, { access, blinding }, timeMs, work) {
      touched.program(address);
      const columns = accessColumns(access);
      work.touch(columns.access);
      await rows.update(address, { ...columns, blinding }, timeMs, work);
      await deleteReaders(address, work);
      await insertReaders(db, address, access, work);
    },

    async delete(program, timeMs, work) {
      await documentRows(program.address, work).clear(program);
      await deleteReaders(program.address, work);
      await rows.update(program.address, { deleted: true, size_bytes: 0, in_parts: false }, timeMs, work);
    },

    takenBack: () => touched.takenBack(),

    leaves: () => readLeaves(db, touched.all),
  };
}

/** Programs' own rows. */
function createOwnRows(db: Queries) {
  /** Rows that were read and not changed since, by address. */
  const known = new Map<string, ProgramRow>();

  /** A program's own row, deleted or not. */
  async function read(address: string): Promise<ProgramRow | undefined> {
    const row = await db.first<ProgramRow>((sql) => sql("programs").where({ address }).select(programColumns));
    return row && checkProgram(address, row);
  }

  /** Changes a program's own row. */
  async function update(address: string, columns: Partial<ProgramRow>, timeMs: number, work: Work): Promise<void> {
    work.touchRows(1);
    const before = known.get(address) ?? (await read(address))!;
    known.delete(address);
    const changed = { ...columns, updated_ms: timeMs };
    const row = { ...before, ...changed };
    const hashes = { entry_hash: hashProgramEntry(row), rest_hash: hashProgramRest(row) };
    await db.run((sql) =>
      sql("programs")
        .where({ address })
        .update({ ...changed, ...hashes }),
    );
  }

  return {
    /** A program's own row; undefined for one that was deleted. */
    async find(address: string): Promise<ProgramRow | undefined> {
      const row = await read(address);
      if (row === undefined || Boolean(row.deleted)) {
        return undefined;
      }
      known.set(address, row);
      return row;
    },
    update,
  };
}

async function insertReaders(db: Queries, address: string, rule: AccessRule, work: Work): Promise<void> {
  const rows = [...namedReaders(rule)].map(([identity, isAllowed]) => ({ address, identity, allowed: isAllowed }));
  work.touchRows(rows.length);
  await db.runAll((sql) => inChunks(rows).map((some) => sql("program_readers").insert(some)));
}

/** What a program's own row says of what it holds. */
function contentColumns(content: ProgramContent) {
  const { encoding = "json", type = "null", sizeBytes = 0 } = content ?? {};
  return { encoding, type, size_bytes: sizeBytes, in_parts: isKeptInParts(content) };
}

/** What a program's own row says of who may read. */
function accessColumns({ mode, allowed, blacklisted, groups }: AccessRule) {
  return { mode, access: JSON.stringify({ allowed, blacklisted, groups }) };
}
