/**
 * Storage programs in the database. Each read is one query, so that the rule a read is checked against and what it
 * returns are of the same moment.
 */
import type { Knex } from "knex";
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
  findWithData(address: string): Promise<{ record: ProgramRecord; data: string | undefined } | undefined>;
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

const columns =
  "p.address, p.owner, p.name, p.encoding, p.type, p.mode, p.access, p.metadata, p.size_bytes, p.created_ms, p.updated_ms";
const byAddress = "WHERE p.address = ? AND NOT p.deleted";

/** Reads from the database. */
export function createPrograms({ engine, read, prepare }: Pick<Database, "engine" | "read" | "prepare">): Programs {
  const withData = prepare<Row & { data: string | null }>(
    `SELECT ${columns}, d.data FROM programs p LEFT JOIN program_documents d ON d.address = p.address ${byAddress}`,
  );
  const withNames = prepare<Row & { field_name: string | null }>(
    `SELECT ${columns}, f.name_json AS field_name FROM programs p LEFT JOIN program_fields f ON f.address = p.address
      ${byAddress} ORDER BY f.position`,
  );
  const withField = prepare<Row & { field_type: JsonType | null; field_value: string | null }>(
    `SELECT ${columns}, f.type AS field_type, f.value AS field_value FROM programs p
      LEFT JOIN program_fields f ON f.address = p.address AND f.name_json = ? ${byAddress}`,
  );

  function list(identity: string | undefined, page: Page): Knex.QueryBuilder {
    return read("programs")
      .where("deleted", false)
      .where((rule) => whereReadable(rule, identity))
      .orderBy("id", "desc")
      .limit(page.limit)
      .offset(page.offset)
      .select("address", "programs.name", "owner", "encoding", "size_bytes", "created_ms", "updated_ms");
  }

  /** PostgreSQL's index needs its own escape character, the backslash; SQLite has none by itself. */
  function whereContains(programs: Knex.QueryBuilder, text: string): Knex.QueryBuilder {
    const pattern = `%${text.replace(/[%_\\]/g, "\\$&")}%`;
    return programs.whereRaw(engine === "postgresql" ? "name_folded LIKE ?" : "name_folded LIKE ? ESCAPE '\\'", [
      pattern,
    ]);
  }

  return {
    async findWithData(address) {
      const [row] = await withData(address);
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
      const [row] = await withField(JSON.stringify(name), address);
      if (row === undefined) {
        return undefined;
      }
      const { field_type: type, field_value: value } = row;
      return { record: toRecord(row), field: type === null || value === null ? undefined : { type, value } };
    },

    async listByOwner(owner, identity, page) {
      return toEntries((await list(identity, page).where({ owner })) as Row[]);
    },

    async search(query, exact, identity, page) {
      if (query.includes("\0")) {
        // No name has one, and PostgreSQL takes none.
        return [];
      }
      const named = list(identity, page);
      if (exact) {
        return toEntries((await named.where("name", query)) as Row[]);
      }
      const folded = foldName(query);
      if (Array.from(folded).length < indexedLength) {
        void whereContains(named, folded).whereRaw("id > (SELECT max(id) FROM programs) - ?", [shortQueryPrograms]);
      } else if (engine === "postgresql") {
        void whereContains(named, folded);
      } else {
        void named
          .join("program_names", "program_names.rowid", "programs.id")
          .whereRaw("program_names MATCH ?", [`"${folded.replaceAll('"', '""')}"`])
          .clearOrder()
          .orderBy("program_names.rowid", "desc");
      }
      return toEntries((await named) as Row[]);
    },
  };
}

/** The rule of canRead for lists. */
function whereReadable(rule: Knex.QueryBuilder, identity: string | undefined): void {
  if (identity === undefined) {
    void rule.where("mode", "public");
    return;
  }
  const listed = (allowed: boolean) => (query: Knex.QueryBuilder) => {
    void query
      .from("program_readers as reader")
      .select("reader.address")
      .whereRaw("reader.address = programs.address")
      .where({ "reader.identity": identity, "reader.allowed": allowed });
  };
  void rule
    .where("owner", identity)
    .orWhere((open) => void open.where("mode", "public").whereNotExists(listed(false)))
    .orWhere((named) => void named.where("mode", "restricted").whereExists(listed(true)).whereNotExists(listed(false)));
}

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

function toEntries(rows: Row[]): ProgramEntry[] {
  return rows.map((row) => ({
    address: row.address,
    name: row.name,
    owner: row.owner,
    encoding: row.encoding,
    sizeBytes: row.size_bytes,
    createdMs: row.created_ms,
    updatedMs: row.updated_ms,
  }));
}
