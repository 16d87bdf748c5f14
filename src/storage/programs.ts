/**
 * Storage programs in the database. Each read is one query, so that the rule a read is checked against and what it
 * returns are of the same moment.
 */
import { prepareBatch } from "../db/batch.js";
import type { Database, Engine } from "../db/connect.js";
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
  /** How many were ever made: those that were deleted, too. */
  createdCount(): Promise<number>;
}

/** From this many characters on the index of names helps. */
const indexedLength = 3;
/** What is shorter is looked for among so many of the newest programs: a look at all of them would take too long. */
const shortQueryPrograms = 50_000;

/** A name in one case, so that every database engine finds the same. */
export function foldName(name: string): string {
  return name.toLowerCase();
}

interface EntryRow {
  readonly address: string;
  readonly name: string;
  readonly owner: string;
  readonly encoding: "json" | "binary";
  readonly size_bytes: number;
  readonly created_ms: number;
  readonly updated_ms: number;
}

/** A record as one column: a driver makes one long text of a row faster than many short ones. */
interface PackedRow {
  /** Where its key stands among those that were asked for. */
  readonly slot: number;
  /** JSON text of a {@link PackedRecord}. */
  readonly record: string;
}

/** Reads from the database. */
export function createPrograms(database: Pick<Database, "engine" | "prepare">): Programs {
  const { engine, prepare } = database;
  const sql = terms[engine];
  /** A program, and more, by a key: a list whose first item is the address. */
  function prepareRecord<Extra>(extraColumns: string, join = "") {
    return prepareBatch<PackedRow & Extra>(
      database,
      ({ table, slot }) => `SELECT ${slot} AS slot, ${sql.record} AS record, ${extraColumns}
        FROM ${table} JOIN programs p ON p.address = k.value ->> 0 ${join} WHERE NOT p.deleted`,
    );
  }
  const withData = prepareRecord<{ data: string | null }>(
    "d.data",
    "LEFT JOIN program_documents d ON d.address = p.address",
  );
  const withNames = prepareRecord<{ names: string }>(`${sql.fieldNames} AS names`);
  // Programs are never removed, and their ids count up.
  const newestId = prepare<{ readonly id: number | null }>("SELECT max(id) AS id FROM programs", "list");
  const withField = prepareRecord<{ field_type: JsonType | null; field_value: string | null }>(
    "f.type AS field_type, f.value AS field_value",
    "LEFT JOIN program_fields f ON f.address = p.address AND f.name_json = k.value ->> 1",
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
    async createdCount() {
      const [row] = await newestId();
      return row?.id ?? 0;
    },

    async findWithData(address) {
      const row = await withData([address]);
      return row && { record: toRecord(row), data: row.data ?? undefined };
    },

    async findWithFieldNames(address) {
      const row = await withNames([address]);
      return row && { record: toRecord(row), names: JSON.parse(row.names) as string[] };
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

/** What the engines say differently. */
interface SqlTerms {
  readonly record: string;
  /** JSON text of the names of the top-level fields, in the document's order. */
  readonly fieldNames: string;
}

const terms: Readonly<Record<Engine, SqlTerms>> = {
  sqlite: {
    record: recordText("json_object", (text) => `json(${text})`),
    fieldNames: `(SELECT json_group_array(json(f.name_json)) FROM
      (SELECT name_json FROM program_fields WHERE address = p.address ORDER BY position) f)`,
  },
  postgresql: {
    record: `CAST(${recordText("json_build_object", (text) => `CAST(${text} AS json)`)} AS text)`,
    fieldNames: `(SELECT CAST(coalesce(json_agg(CAST(f.name_json AS json) ORDER BY f.position), '[]') AS text)
      FROM program_fields f WHERE f.address = p.address)`,
  },
};

/** An expression for the JSON text of a {@link PackedRecord}. */
function recordText(object: string, toJson: (text: string) => string): string {
  return `${object}('address', p.address, 'name', p.name, 'encoding', p.encoding, 'type', p.type,
    'owner', p.owner, 'mode', p.mode, 'lists', ${toJson("p.access")}, 'metadata', p.metadata, 'sizeBytes', p.size_bytes, 'createdMs', p.created_ms, 'updatedMs', p.updated_ms)`;
}

/** What {@link recordText} gives, parsed. */
type PackedRecord = Omit<ProgramRecord, "access" | "metadata"> &
  Pick<AccessRule, "owner" | "mode"> & {
    readonly lists: Omit<AccessRule, "owner" | "mode">;
    readonly metadata: string | null;
  };

function toRecord({ record }: PackedRow): ProgramRecord {
  const packed = JSON.parse(record) as PackedRecord;
  const { allowed, blacklisted, groups } = packed.lists;
  return {
    address: packed.address,
    name: packed.name,
    encoding: packed.encoding,
    type: packed.type,
    access: { owner: packed.owner, mode: packed.mode, allowed, blacklisted, groups },
    metadata: packed.metadata ?? undefined,
    sizeBytes: packed.sizeBytes,
    createdMs: packed.createdMs,
    updatedMs: packed.updatedMs,
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
