/** Changes storage programs, in the write buffer of a block. */
import { targetAddress } from "../../base/program-address.js";
import { hashProgramEntry, hashProgramRest } from "../../db/rows/row-hashes.js";
import type { WriteBuffer } from "../../db/rows/write-buffer.js";
import { type AccessRule, namedReaders } from "../programs/access.js";
import { isStoredInParts, writeContent } from "../changes/document-writing.js";
import { createDocumentRows } from "./program-document-store.js";
import { type ProgramTableRow, type ProgramTables, addProgramTables } from "./program-tables-store.js";
import { type DocumentRows, foldName, type ProgramChanges, type ProgramContent } from "../programs/programs.js";
import { toRecord } from "../programs/stored-program.js";
import { readLeaves } from "./program-state-store.js";
import { createDirtyPrograms } from "../changes/dirty-programs.js";
import type { CostCounter } from "../programs/cost.js";

/** Size limit in bytes of documents whose fields are prefetched. */
const maxPrefetchBytes = 2 * 1024;

/** Creates the changes, inside the transaction of a block. They are stored with the block's other rows. */
export function createProgramChanges(buffer: WriteBuffer): ProgramChanges {
  const tables = addProgramTables(buffer);
  const rows = createOwnRows(tables);
  const dirty = createDirtyPrograms(buffer.onRollback);
  const documentRows = (address: string, cost: CostCounter): DocumentRows =>
    dirty.track(address, createDocumentRows({ tables, address, cost }));
  const deleteReaders = async (address: string, cost: CostCounter): Promise<void> =>
    cost.addRows(await tables.readers.clear(address));

  return {
    prefetch: (operations) => prefetchRows(tables, operations),

    async find(address, cost) {
      const row = await rows.find(address);
      cost.addRows(1);
      if (row === undefined) {
        return undefined;
      }
      cost.addText(row.access);
      const { encoding, type, access, sizeBytes } = toRecord(row);
      return { address, encoding, type, access, sizeBytes, inParts: Boolean(row.in_parts) };
    },

    wasCreated: async (address) => (await tables.programs.get(address)) !== undefined,

    insert({ address, name, access, content, metadata, blinding }, timeMs, cost) {
      dirty.program(address).isComplete = isStoredInParts(content);
      const columns = accessColumns(access);
      cost.addRows(1);
      [name, columns.access, metadata ?? ""].forEach((text) => cost.addText(text));
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
      tables.programs.insert({ ...row, name_folded: foldName(name), ...hashesOf(row) });
      // These tables have no rows for the address of a new program, so they need not be read.
      [tables.readers, tables.documents, tables.fields, tables.chunks].forEach((table) => table.markEmpty(address));
      insertReaders(tables, address, access, cost);
      return content === undefined ? Promise.resolve() : writeContent(documentRows(address, cost), content);
    },

    async replaceContent(program, content, timeMs, cost) {
      const document = documentRows(program.address, cost);
      await document.clear(program);
      await rows.update(program.address, contentColumns(content), timeMs, cost);
      if (content !== undefined) {
        await writeContent(document, content);
      }
    },

    async changeDocument(address, change, timeMs, cost) {
      const { sizeBytes, inParts } = await change(documentRows(address, cost));
      await rows.update(address, { type: "object", size_bytes: sizeBytes, in_parts: inParts }, timeMs, cost);
    },

    async setAccess(address, { access, blinding }, timeMs, cost) {
      dirty.program(address);
      const columns = accessColumns(access);
      cost.addText(columns.access);
      await rows.update(address, { ...columns, blinding }, timeMs, cost);
      await deleteReaders(address, cost);
      insertReaders(tables, address, access, cost);
    },

    async delete(program, timeMs, cost) {
      await documentRows(program.address, cost).clear(program);
      await deleteReaders(program.address, cost);
      await rows.update(program.address, { deleted: true, size_bytes: 0, in_parts: false }, timeMs, cost);
    },

    leaves: (options) => readLeaves(buffer.db, tables, dirty.all, options),
  };
}

/** Prefetches rows that operations will read, except those of large documents. */
async function prefetchRows(
  { programs, readers, documents, fields }: ProgramTables,
  expected: Parameters<ProgramChanges["prefetch"]>[0],
): Promise<void> {
  const targets = expected.map(({ operation, by }) => ({
    kind: operation.operation.case,
    address: targetAddress(operation, by)!,
  }));
  await programs.prefetch(targets.map(({ address }) => address));
  const [withReaders, withText, withFields]: [string[], string[], string[]] = [[], [], []];
  for (const { kind, address } of targets) {
    const row = programs.peek(address);
    if (row === undefined || Boolean(row.deleted)) {
      continue;
    }
    if (kind === "updateAccess" || kind === "deleteProgram") {
      withReaders.push(address);
    }
    if (kind !== "createProgram" && !row.in_parts) {
      withText.push(address);
      if (row.size_bytes <= maxPrefetchBytes && kind !== "updateAccess") {
        withFields.push(address);
      }
    }
  }
  await readers.prefetch(withReaders);
  await documents.prefetch(withText);
  await fields.prefetch(withFields);
}

/** Reads and updates programs' own rows. */
function createOwnRows({ programs }: ProgramTables) {
  return {
    /** Returns a program's own row; undefined if there is none or the program was deleted. */
    async find(address: string): Promise<ProgramTableRow | undefined> {
      const row = await programs.get(address);
      return row === undefined || Boolean(row.deleted) ? undefined : row;
    },

    /** Updates columns, the time and the checksums of a program's own row. */
    async update(address: string, columns: Partial<ProgramTableRow>, timeMs: number, cost: CostCounter): Promise<void> {
      cost.addRows(1);
      const row = { ...(await programs.get(address))!, ...columns, updated_ms: timeMs };
      programs.put({ ...row, ...hashesOf(row) });
    },
  };
}

function hashesOf(row: Omit<ProgramTableRow, "name_folded" | "entry_hash" | "rest_hash">) {
  return { entry_hash: hashProgramEntry(row), rest_hash: hashProgramRest(row) };
}

function insertReaders({ readers }: ProgramTables, address: string, rule: AccessRule, cost: CostCounter): void {
  const named = namedReaders(rule);
  cost.addRows(named.size);
  named.forEach((allowed, identity) => readers.insert({ address, identity, allowed }));
}

/** Returns the columns of a program's own row that describe its contents. */
function contentColumns(content: ProgramContent) {
  const { encoding = "json", type = "null", sizeBytes = 0 } = content ?? {};
  return { encoding, type, size_bytes: sizeBytes, in_parts: isStoredInParts(content) };
}

/** Returns the columns of a program's own row that describe its access rule. */
function accessColumns({ mode, allowed, blacklisted, groups }: AccessRule) {
  return { mode, access: JSON.stringify({ allowed, blacklisted, groups }) };
}
