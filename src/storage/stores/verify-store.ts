/** Verifies every stored program: its row, its document, its field tree and its index entries. */
import { runCheck, type Verification } from "../../base/errors/verification.js";
import type { Queries } from "../../db/queries/database.js";
import { namedReaders } from "../programs/access.js";
import { membersOf } from "../documents/document.js";
import { isSame } from "../../tree/hashes.js";
import { createPageStore } from "../../tree/page-store.js";
import { readRoot } from "../../tree/read-root.js";
import { partsColumns } from "./program-query-store.js";
import { buildFields } from "../programs/program-state.js";
import { foldName } from "../programs/programs.js";
import {
  checkDocument,
  checkProgram,
  corruptionOf,
  joinParts,
  parse,
  type PartsRow,
  type ProgramRow,
  programColumns,
  readFields,
  toRecord,
} from "../programs/stored-program.js";

type VerifiedRow = ProgramRow &
  PartsRow & {
    readonly id: number;
    readonly name_folded: string;
    /** Id of the program that the index on addresses finds. */
    readonly found_id: number | null;
    /** JSON array of identities, each with true if allowed and false if excluded. */
    readonly readers: string;
  };

/** Returns SQL that reads everything about the next program. A single query reads from one snapshot. */
function programQuery({ dialect }: Queries): string {
  const readers = dialect.jsonArray({
    item: dialect.jsonList(["r.identity", "r.allowed"]),
    from: "program_readers r WHERE r.address = p.address",
    orderBy: "r.identity",
  });
  return `SELECT ${programColumns.map((name) => `p.${name}`).join(", ")}, p.id, p.name_folded,
      (SELECT q.id FROM programs q WHERE q.address = p.address) AS found_id,
      ${partsColumns(dialect, "p.address")}, ${readers} AS readers
    FROM programs p LEFT JOIN program_documents d ON d.address = p.address
    WHERE p.id > ? ORDER BY p.id LIMIT 1`;
}

/** Scans all programs in the order of their creation. `checkState` compares a program with its leaf. */
export async function* verifyPrograms(db: Queries, checkState: (address: string) => Promise<void>): Verification {
  const next = db.prepare<VerifiedRow>(programQuery(db), "list");
  const count = await db.first<{ count: number }>((sql) => sql("programs").count({ count: "*" }));
  const total = count?.count ?? 0;
  let id = 0;
  for (let done = 1; ; done++) {
    const [row] = await next(id);
    if (row === undefined) {
      return;
    }
    id = row.id;
    const { address } = row;
    const findings = await runCheck(`the storage program ${address}`, async () => {
      const text = await verifyProgram(row);
      if (text !== undefined) {
        await verifyFields(db, row, text, async () => (await next(row.id - 1))[0]);
      }
      await checkState(address);
    });
    yield { kind: "programs", done, total: Math.max(done, total), findings };
  }
}

/** Verifies the result of one query. Returns the document if it is stored in parts. */
async function verifyProgram(row: VerifiedRow): Promise<string | undefined> {
  const { address } = row;
  checkProgram(address, row);
  if (row.found_id !== row.id || row.name_folded !== foldName(row.name)) {
    throw corruptionOf(address, "row");
  }
  verifyReaders(row);
  if (row.deleted) {
    if (row.data !== null || row.fields !== "[]" || row.chunks !== "[]") {
      throw corruptionOf(address, "document");
    }
  } else if (row.in_parts) {
    return await joinParts(address, row, row.size_bytes);
  } else {
    verifyText(row);
  }
  return undefined;
}

/**
 * Verifies that the field tree of a document in parts matches its rows. The tree is read separately, so a mismatch
 * counts only if the program has not changed since its rows were read.
 */
async function verifyFields(
  db: Queries,
  { address, entry_hash: knownHash }: VerifiedRow,
  text: string,
  readAgain: () => Promise<VerifiedRow | undefined>,
): Promise<void> {
  const { fieldsRoot } = await buildFields(text);
  if (isSame(fieldsRoot, await readRoot(createPageStore(db, address).load))) {
    return;
  }
  const again = await readAgain();
  if (again?.entry_hash === knownHash) {
    throw corruptionOf(address, "field");
  }
  if (again !== undefined && !again.deleted && Boolean(again.in_parts)) {
    await verifyFields(db, again, await joinParts(address, again, again.size_bytes), readAgain);
  }
}

/** Verifies a document that is stored as one text, and the rows of its fields. */
function verifyText(row: VerifiedRow): void {
  const { address } = row;
  const text = checkDocument(row, row);
  const fields = new Map<string, string>();
  for (const { name_json, value } of readFields(address, row.fields)) {
    fields.set(JSON.parse(name_json) as string, value);
  }
  const members = row.type === "object" && text !== undefined ? membersOf(text) : [];
  const areValuesEqual = members.every(
    ({ name, valueStart, valueEnd }) => fields.get(name) === text!.slice(valueStart, valueEnd),
  );
  if (!areValuesEqual || fields.size !== members.length || row.chunks !== "[]") {
    throw corruptionOf(address, "field");
  }
}

/** Verifies that the access entries, which lists use, match the program's access rule. */
function verifyReaders(row: VerifiedRow): void {
  const stored = parse(row.address, row.readers, "row") as [string, boolean | number][];
  const named = row.deleted ? new Map<string, boolean>() : namedReaders(toRecord(row).access);
  if (
    stored.length !== named.size ||
    !stored.every(([identity, allowed]) => named.get(identity) === Boolean(allowed))
  ) {
    throw corruptionOf(row.address, "row");
  }
}
