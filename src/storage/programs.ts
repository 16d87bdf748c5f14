/**
 * Storage programs in the database. Each read is one query, so that the rule a read is checked against and what it
 * returns are of the same moment.
 */
import { batch } from "../db/batch.js";
import type { Database } from "../db/connect.js";
import type { AccessRule } from "./access.js";
import type { JsonType } from "./document.js";
import type { Page } from "./paging.js";

/** A program, without its document. */
export interface ProgramRecord {
  readonly address: string;
  readonly name: string;
  readonly encoding: "json" | "binary";
  /** Type of the document; binary when it is no JSON. */
  readonly type: JsonType | "binary";
  readonly access: AccessRule;
  /** JSON text of an object. */
  readonly metadata: string | undefined;
  readonly sizeBytes: number;
  readonly createdMs: number;
  readonly updatedMs: number;
}

/** A program with its document's JSON text. */
export interface WholeProgram {
  readonly record: ProgramRecord;
  readonly data: string | undefined;
}

/** A program in a list. */
export type ProgramEntry = Pick<
  ProgramRecord,
  "address" | "name" | "encoding" | "sizeBytes" | "createdMs" | "updatedMs"
> & {
  readonly owner: string;
};

/** A top-level field. */
export interface Field {
  readonly type: JsonType;
  /** JSON text of the value. */
  readonly value: string;
}

/** Reads of stored programs; undefined for one that does not exist or was deleted. */
export interface Programs {
  /** With the document's JSON text. */
  findWithData(address: string): Promise<WholeProgram | undefined>;
  /** With the names of the top-level fields, in the document's order. */
  findWithFieldNames(address: string): Promise<{ record: ProgramRecord; names: string[] } | undefined>;
  /** With one top-level field. */
  findWithField(
    address: string,
    name: string,
  ): Promise<{ record: ProgramRecord; field: Field | undefined } | undefined>;
  /** Programs of an owner that the caller may read, newest first. */
  listByOwner(owner: string, identity: string | undefined, page: Page): Promise<ProgramEntry[]>;
  /** Programs by name that the caller may read, newest first. */
  search(query: string, exact: boolean, identity: string | undefined, page: Page): Promise<ProgramEntry[]>;
}

/** From this many characters on the index of names helps. */
const indexedLength = 3;
/** What is shorter is looked for among so many of the newest programs: a look at all of them would take too long. */
const shortQueryPrograms = 50_000;

/** Most programs that are read with one query: each may be a document of 1 MiB. */
const maxBatch = 16;

/** A name in one case, so that every database engine finds the same. */
export function foldName(name: string): string {
  return name.toLowerCase();
}

/** The columns of a program's row that say who may read. */
export interface AccessColumns {
  readonly owner: string;
  readonly mode: AccessRule["mode"];
  /** JSON text of the rest. */
  readonly access: string;
}

interface Row extends AccessColumns {
  readonly address: string;
  readonly name: string;
  readonly encoding: "json" | "binary";
  readonly type: JsonType | "binary";
  readonly metadata: string | null;
  readonly size_bytes: number;
  readonly created_ms: number;
  readonly updated_ms: number;
}

type EntryRow = Pick<Row, "address" | "name" | "owner" | "encoding" | "size_bytes" | "created_ms" | "updated_ms">;

const columns =
  "p.address, p.owner, p.name, p.encoding, p.type, p.mode, p.access, p.metadata, p.size_bytes, p.created_ms, p.updated_ms";

/** Reads from the database. */
export function createPrograms({ engine, prepare }: Pick<Database, "engine" | "prepare">): Programs {
  const keys =
    engine === "postgresql"
      ? "json_array_elements(CAST(? AS json)) WITH ORDINALITY AS k(value, key)"
      : "json_each(?) AS k";
  /** One row at most for each key: a list whose first item is the address. */
  function prepareBatch<Extra>(extraColumns: string, join: string) {
    type Found = Row & Extra & { slot: number };
    const query = prepare<Found>(
      `SELECT k.key AS slot, ${columns}, ${extraColumns} FROM ${keys} JOIN programs p ON p.address = k.value ->> 0
        LEFT JOIN ${join} WHERE NOT p.deleted`,
    );
    const firstSlot = engine === "postgresql" ? 1 : 0;
    return batch<readonly string[], Found>(async (wanted) => {
      const found = new Array<Found | undefined>(wanted.length);
      for (const row of await query(JSON.stringify(wanted))) {
        found[row.slot - firstSlot] = row;
      }
      return found;
    }, maxBatch);
  }
  const withData = prepareBatch<{ data: string | null }>("d.data", "program_documents d ON d.address = p.address");
  const withNames = prepare<Row & { field_name: string | null }>(
    `SELECT ${columns}, f.name_json AS field_name FROM programs p LEFT JOIN program_fields f ON f.address = p.address
      WHERE p.address = ? AND NOT p.deleted ORDER BY f.position`,
  );
  const withField = prepareBatch<{ field_type: JsonType | null; field_value: string | null }>(
    "f.type AS field_type, f.value AS field_value",
    "program_fields f ON f.address = p.address AND f.name_json = k.value ->> 1",
  );

  /** A list of the programs that the caller may read, newest first. */
  function prepareList(from: string, where: string, id = "p.id") {
    const text = (readable: string): string =>
      `SELECT p.address, p.name, p.owner, p.encoding, p.size_bytes, p.created_ms, p.updated_ms
        FROM ${from} WHERE ${where} AND NOT p.deleted AND ${readable} ORDER BY ${id} DESC LIMIT ? OFFSET ?`;
    const byAnybody = prepare<EntryRow>(text("p.mode = 'public'"), "list");
    const byIdentity = prepare<EntryRow>(text(readableByIdentity), "list");
    return async (value: string, identity: string | undefined, { limit, offset }: Page): Promise<ProgramEntry[]> => {
      const rows =
        identity === undefined
          ? await byAnybody(value, limit, offset)
          : await byIdentity(value, identity, identity, identity, identity, limit, offset);
      return rows.map(toEntry);
    };
  }
  // PostgreSQL's index needs the escape character that it has by itself, the backslash; SQLite has none by itself.
  const isLike = engine === "postgresql" ? "p.name_folded LIKE ?" : "p.name_folded LIKE ? ESCAPE '\\'";
  const ofOwner = prepareList("programs p", "p.owner = ?");
  const named = prepareList("programs p", "p.name = ?");
  const namedLikeLately = prepareList(
    "programs p",
    `${isLike} AND p.id > (SELECT max(id) FROM programs) - ${shortQueryPrograms}`,
  );
  const namedLike =
    engine === "postgresql"
      ? prepareList("programs p", isLike)
      : prepareList(
          "program_names JOIN programs p ON p.id = program_names.rowid",
          "program_names MATCH ?",
          "program_names.rowid",
        );

  return {
    async findWithData(address) {
      const row = await withData([address]);
      return row && { record: toRecord(row), data: row.data ?? undefined };
    },

    async findWithFieldNames(address) {
      const rows = await withNames(address);
      const [row] = rows;
      return (
        row && {
          record: toRecord(row),
          names: rows.flatMap(({ field_name: name }) => (name === null ? [] : [JSON.parse(name) as string])),
        }
      );
    },

    async findWithField(address, name) {
      const row = await withField([address, JSON.stringify(name)]);
      if (row === undefined) {
        return undefined;
      }
      const { field_type: type, field_value: value } = row;
      return { record: toRecord(row), field: type === null || value === null ? undefined : { type, value } };
    },

    listByOwner: ofOwner,

    async search(query, exact, identity, page) {
      if (query.includes("\0")) {
        // No name has one, and PostgreSQL takes none.
        return [];
      }
      if (exact) {
        return await named(query, identity, page);
      }
      const folded = foldName(query);
      if (Array.from(folded).length < indexedLength) {
        return await namedLikeLately(patternOf(folded), identity, page);
      }
      const isPhrase = engine === "sqlite";
      return await namedLike(isPhrase ? `"${folded.replaceAll('"', '""')}"` : patternOf(folded), identity, page);
    },
  };
}

/** What LIKE takes to find a text anywhere in a name. */
function patternOf(text: string): string {
  return `%${text.replace(/[%_\\]/g, "\\$&")}%`;
}

const listed = (allowed: boolean): string =>
  `EXISTS (SELECT 1 FROM program_readers r WHERE r.address = p.address AND r.identity = ? AND r.allowed = ${allowed})`;

/** The rule of canRead for lists; it takes the caller's identity four times. */
const readableByIdentity = `(p.owner = ? OR (p.mode = 'public' AND NOT ${listed(false)})
  OR (p.mode = 'restricted' AND ${listed(true)} AND NOT ${listed(false)}))`;

/** The rule of a program's row. */
export function toAccessRule({ owner, mode, access }: AccessColumns): AccessRule {
  return { owner, mode, ...(JSON.parse(access) as Omit<AccessRule, "owner" | "mode">) };
}

function toRecord(row: Row): ProgramRecord {
  return {
    address: row.address,
    name: row.name,
    encoding: row.encoding,
    type: row.type,
    access: toAccessRule(row),
    metadata: row.metadata ?? undefined,
    sizeBytes: row.size_bytes,
    createdMs: row.created_ms,
    updatedMs: row.updated_ms,
  };
}

function toEntry(row: EntryRow): ProgramEntry {
  return {
    address: row.address,
    name: row.name,
    owner: row.owner,
    encoding: row.encoding,
    sizeBytes: row.size_bytes,
    createdMs: row.created_ms,
    updatedMs: row.updated_ms,
  };
}
