/** Changes storage programs, in the write buffer of a block. */
import { targetAddress } from "../../base/program-address.js";
import { hashProgramEntry, hashProgramRest } from "../../db/rows/row-hashes.js";
import type { WriteBuffer } from "../../db/rows/write-buffer.js";
import { type AccessRule, namedReaders } from "../programs/access.js";
import {
  type ChangeableProgram,
  type DocumentState,
  type ExpectedOperation,
  foldName,
  type ProgramContent,
} from "../programs/programs.js";
import { toRecord } from "../programs/stored-program.js";
import { type DirtyProgram, type LeavesOptions, readLeaves } from "../stores/program-state-store.js";
import { addProgramTables, type ProgramTableRow, type ProgramTables } from "../stores/program-tables-store.js";
import type { CostCounter } from "./cost.js";
import { DocumentRows } from "./document-rows-store.js";
import { isStoredInParts, writeContent } from "./document-writing.js";

/** Size limit in bytes of documents whose fields are prefetched. */
const maxPrefetchBytes = 2 * 1024;

/** New access rule of a program, with the blinding that accompanies each rule. */
export interface NewAccess {
  readonly access: AccessRule;
  /** 64 hex digits, known only to readers of the transaction: see {@link ProgramParts.blinding}. */
  readonly blinding: string;
}

export interface NewProgram extends NewAccess {
  readonly address: string;
  readonly name: string;
  readonly content: ProgramContent;
  /** JSON text of an object. */
  readonly metadata: string | undefined;
}

export type ProgramChanges = ReturnType<typeof createProgramChanges>;

/**
 * Creates the changes, inside the transaction of a block. They are stored with the block's other rows. Times are block
 * times.
 */
export function createProgramChanges(buffer: WriteBuffer) {
  const tables = addProgramTables(buffer);
  const { programs, readers } = tables;
  const dirty = new Map<string, DirtyProgram>();

  /** Returns the changed parts of a program. May list unchanged programs, if a transaction rolled back. */
  function dirtyProgram(address: string): DirtyProgram {
    const known = dirty.get(address) ?? { isComplete: false, hadTree: false, text: undefined, fields: new Set() };
    dirty.set(address, known);
    return known;
  }

  const documentRows = (address: string, cost: CostCounter): DocumentRows =>
    new DocumentRows(tables, address, cost, dirtyProgram(address), buffer.onRollback);

  /** Updates columns, the time and the checksums of a program's own row. */
  async function update(
    address: string,
    columns: Partial<ProgramTableRow>,
    timeMs: number,
    cost: CostCounter,
  ): Promise<void> {
    cost.addRows(1);
    const row = { ...(await programs.get(address))!, ...columns, updated_ms: timeMs };
    programs.put({ ...row, ...hashesOf(row) });
  }

  function insertReaders(address: string, rule: AccessRule, cost: CostCounter): void {
    const named = namedReaders(rule);
    cost.addRows(named.size);
    named.forEach((allowed, identity) => readers.insert({ address, identity, allowed }));
  }

  return {
    /** Prefetches rows that the operations will read. Other rows are read on demand. */
    prefetch: (operations: readonly ExpectedOperation[]) => prefetchRows(tables, operations),

    /** Finds a program; undefined if it does not exist or was deleted. */
    async find(address: string, cost: CostCounter): Promise<ChangeableProgram | undefined> {
      const row = await programs.get(address);
      cost.addRows(1);
      if (row === undefined || Boolean(row.deleted)) {
        return undefined;
      }
      cost.addText(row.access);
      const { encoding, type, access, sizeBytes } = toRecord(row);
      return { address, encoding, type, access, sizeBytes, inParts: Boolean(row.in_parts) };
    },

    /** Returns true if a program exists or existed at this address. */
    wasCreated: async (address: string) => (await programs.get(address)) !== undefined,

    async insert(program: NewProgram, timeMs: number, cost: CostCounter): Promise<void> {
      const { address, name, access, content, metadata = null, blinding } = program;
      dirtyProgram(address).isComplete = isStoredInParts(content);
      const columns = accessColumns(access);
      cost.addRow(name);
      cost.addText(columns.access);
      cost.addText(metadata ?? "");
      const row = {
        ...{ address, owner: access.owner, name, metadata, blinding },
        ...contentColumns(content),
        ...columns,
        ...{ created_ms: timeMs, updated_ms: timeMs, deleted: false },
      };
      programs.insert({ ...row, name_folded: foldName(name), ...hashesOf(row) });
      // These tables have no rows for the address of a new program, so they need not be read.
      [readers, tables.documents, tables.fields, tables.chunks].forEach((table) => table.markEmpty(address));
      insertReaders(address, access, cost);
      if (content !== undefined) {
        await writeContent(documentRows(address, cost), content);
      }
    },

    async replaceContent(program: ChangeableProgram, content: ProgramContent, timeMs: number, cost: CostCounter) {
      const document = documentRows(program.address, cost);
      await document.clear(program);
      await update(program.address, contentColumns(content), timeMs, cost);
      if (content !== undefined) {
        await writeContent(document, content);
      }
    },

    /** Changes the rows of a document, and stores the resulting state in its program's row. */
    async changeDocument(
      address: string,
      change: (rows: DocumentRows) => Promise<DocumentState>,
      timeMs: number,
      cost: CostCounter,
    ): Promise<void> {
      const { sizeBytes, inParts } = await change(documentRows(address, cost));
      await update(address, { type: "object", size_bytes: sizeBytes, in_parts: inParts }, timeMs, cost);
    },

    async setAccess(address: string, { access, blinding }: NewAccess, timeMs: number, cost: CostCounter) {
      dirtyProgram(address);
      const columns = accessColumns(access);
      cost.addText(columns.access);
      await update(address, { ...columns, blinding }, timeMs, cost);
      cost.addRows(await readers.clear(address));
      insertReaders(address, access, cost);
    },

    async delete(program: ChangeableProgram, timeMs: number, cost: CostCounter): Promise<void> {
      await documentRows(program.address, cost).clear(program);
      cost.addRows(await readers.clear(program.address));
      await update(program.address, { deleted: true, size_bytes: 0, in_parts: false }, timeMs, cost);
    },

    /** Returns the state tree leaves of all programs that the block changed. Call it after all changes. */
    leaves: (options?: LeavesOptions) => readLeaves(buffer.db, tables, dirty, options),
  };
}

/** Prefetches rows that operations will read, except those of large documents. */
async function prefetchRows(
  { programs, readers, documents, fields }: ProgramTables,
  operations: readonly ExpectedOperation[],
): Promise<void> {
  const targets = operations.map(({ operation, by }) => ({
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

function hashesOf(row: Omit<ProgramTableRow, "name_folded" | "entry_hash" | "rest_hash">) {
  return { entry_hash: hashProgramEntry(row), rest_hash: hashProgramRest(row) };
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
