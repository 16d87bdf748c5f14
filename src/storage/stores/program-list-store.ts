/** Lists storage programs that the caller may read, and finds which of many programs a caller may read. */
import { makeImmutable } from "../../base/caches/immutable.js";
import { createLruCache } from "../../base/caches/lru-cache.js";
import type { Queries } from "../../db/queries/database.js";
import { invalidPageToken } from "../../rpc/parameters.js";
import { foldName, type ListPage, type ProgramEntry, type Programs } from "../programs/programs.js";
import { checkEntry, entryColumns, type EntryRow } from "../programs/stored-program.js";

/** Minimum length in characters of queries that the name index supports. */
const indexedLength = 3;
/** Number of latest programs that a shorter query searches. Searching all programs would take too long. */
const shortQueryPrograms = 50_000;

/**
 * Limit on the cached list entries, of about 2 kB each with their texts. Entries with a name longer than
 * `maxNameUnits` UTF-16 code units are not cached.
 */
const maxEntries = 2_000;
const maxNameUnits = 256;

export function createProgramLists({
  dialect: { nameSearch },
  prepare,
}: Queries): Pick<Programs, "listByOwner" | "search" | "createdCount"> {
  const { plain, indexed } = nameSearch;
  // Programs are never removed and their ids increase, so only programs after the last counted id are counted. The ids
  // themselves are no count: PostgreSQL skips some after a crash.
  const countAfter = prepare<{ readonly count: number; readonly id: number | null }>(
    "SELECT count(*) AS count, max(id) AS id FROM programs WHERE id > ?",
    "list",
  );
  let counted = { count: 0, id: 0 };

  const idForAnonymous = prepare<{ readonly id: number }>(idText("p.mode = 'public'"));
  const idForIdentity = prepare<{ readonly id: number }>(idText(readableByIdentity));

  /**
   * Returns the id at which a page continues. Rejects programs that the caller may not read, since their position would
   * reveal when they were created.
   */
  async function idOf(address: string, identity: string | undefined): Promise<number> {
    const [row] =
      identity === undefined
        ? await idForAnonymous(address)
        : await idForIdentity(address, identity, identity, identity, identity);
    if (row === undefined) {
      throw invalidPageToken();
    }
    return row.id;
  }

  const readEntry = createEntryReader();

  /** Prepares a list of the programs that the caller may read, latest first. */
  function prepareList(where: string, from = "programs p", id = "p.id") {
    const text = (readable: string): string =>
      `SELECT ${entryColumns.map((name) => `p.${name}`).join(", ")}
        FROM ${from} WHERE ${where} AND NOT p.deleted AND ${readable} AND ${id} < ? ORDER BY ${id} DESC LIMIT ? OFFSET ?`;
    const forAnonymous = prepare<EntryRow>(text("p.mode = 'public'"), "list");
    const forIdentity = prepare<EntryRow>(text(readableByIdentity), "list");
    return async (value: string, identity: string | undefined, page: ListPage): Promise<ProgramEntry[]> => {
      const { limit, offset, after } = page;
      const below = after === undefined ? aboveIds : await idOf(after, identity);
      const rows =
        identity === undefined
          ? await forAnonymous(value, below, limit, offset)
          : await forIdentity(value, identity, identity, identity, identity, below, limit, offset);
      return rows.map(readEntry);
    };
  }
  const ofOwner = prepareList("p.owner = ?");
  const named = prepareList("p.name = ?");
  const namedLike = prepareList(indexed.where, indexed.from, indexed.id);
  const recentNamedLike = prepareList(
    `${plain.where} AND p.id > (SELECT max(id) FROM programs) - ${shortQueryPrograms}`,
  );

  return {
    async createdCount() {
      const before = counted;
      const [row] = await countAfter(before.id);
      const count = before.count + (row?.count ?? 0);
      const id = row?.id ?? before.id;
      counted = id > counted.id ? { count, id } : counted;
      return count;
    },

    listByOwner: ofOwner,

    async search(query, exact, identity, page) {
      if (query.includes("\0")) {
        // No name contains NUL, and some engines reject it in a parameter.
        return [];
      }
      if (exact) {
        return await named(query, identity, page);
      }
      const folded = foldName(query);
      return Array.from(folded).length < indexedLength
        ? await recentNamedLike(plain.term(folded), identity, page)
        : await namedLike(indexed.term(folded), identity, page);
    },
  };
}

/** Start value for the first page: greater than every id. */
const aboveIds = 2 ** 31 - 1;
const idText = (readable: string): string => `SELECT p.id AS id FROM programs p WHERE p.address = ? AND ${readable}`;

const isNamed = (allowed: boolean): string =>
  `EXISTS (SELECT 1 FROM program_readers r WHERE r.address = p.address AND r.identity = ? AND r.allowed = ${allowed})`;

/**
 * SQL condition equal to `canRead` for an identified caller, for many programs at once. Takes the caller's identity as
 * four parameters.
 */
const readableByIdentity = `(p.owner = ? OR (p.mode = 'public' AND NOT ${isNamed(false)})
  OR (p.mode = 'restricted' AND ${isNamed(true)} AND NOT ${isNamed(false)}))`;

/**
 * Creates a function that checks rows and converts them to list entries. Lists often return the same programs, and the
 * check is the most expensive step. A row that equals its last checked version is not checked again, and returns the
 * same entry object.
 */
function createEntryReader(): (row: EntryRow) => ProgramEntry {
  const cache = createLruCache<{ readonly row: EntryRow; readonly entry: ProgramEntry }>(maxEntries);
  return (row) => {
    const cached = cache.get(row.address);
    if (cached !== undefined && entryColumns.every((name) => cached.row[name] === row[name])) {
      return cached.entry;
    }
    const entry = makeImmutable(toEntry(checkEntry(row)));
    if (row.name.length <= maxNameUnits) {
      cache.set(row.address, { row, entry });
    }
    return entry;
  };
}

function toEntry(row: EntryRow): ProgramEntry {
  return {
    address: row.address,
    name: row.name,
    owner: row.owner,
    encoding: row.encoding as ProgramEntry["encoding"],
    sizeBytes: row.size_bytes,
    createdMs: row.created_ms,
    updatedMs: row.updated_ms,
  };
}

export interface ReadablePrograms {
  /**
   * Returns the addresses of the programs that the caller may read. A deleted program is readable only by its owner. An
   * address without a program is never returned.
   */
  readableOf(addresses: readonly string[], identity: string | undefined): Promise<ReadonlySet<string>>;
  /**
   * Returns the owners of all programs ever created at these addresses. Owners never change. They are not public, so do
   * not return them to callers unchecked.
   */
  ownersOf(addresses: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

export function createReadablePrograms({ dialect: { list }, prepare }: Queries): ReadablePrograms {
  const text = (readable: string): string =>
    `SELECT p.address AS address FROM ${list.table} JOIN programs p ON p.address = ${list.text} WHERE ${readable}`;
  const forAnonymous = prepare<{ readonly address: string }>(text("NOT p.deleted AND p.mode = 'public'"));
  const forIdentity = prepare<{ readonly address: string }>(
    text(`(p.owner = ? OR (NOT p.deleted AND ${readableByIdentity}))`),
  );
  const owners = prepare<{ readonly address: string; readonly owner: string }>(
    `SELECT p.address AS address, p.owner AS owner FROM ${list.table} JOIN programs p ON p.address = ${list.text}`,
  );
  return {
    async ownersOf(addresses) {
      const rows = addresses.length === 0 ? [] : await owners(JSON.stringify(addresses));
      return new Map(rows.map(({ address, owner }) => [address, owner]));
    },
    async readableOf(addresses, identity) {
      if (addresses.length === 0) {
        return new Set();
      }
      const keys = JSON.stringify(addresses);
      const rows =
        identity === undefined
          ? await forAnonymous(keys)
          : await forIdentity(keys, identity, identity, identity, identity, identity);
      return new Set(rows.map(({ address }) => address));
    },
  };
}

/**
 * Returns true if a program is not public. Deleted programs count, since blocks still contain their history. Scans all
 * programs if every program is public.
 */
export async function hasPrivatePrograms({ prepare }: Pick<Queries, "prepare">): Promise<boolean> {
  const find = prepare<{ readonly address: string }>(
    "SELECT address FROM programs WHERE mode <> 'public' LIMIT 1",
    "list",
  );
  return (await find()).length > 0;
}
