/** Pages of trees in the database. */
import { CorruptionError } from "../base/errors/corruption.js";
import { inChunks } from "../db/rows/chunks.js";
import type { Queries } from "../db/queries/database.js";
import { hashPageRow } from "../db/rows/row-hashes.js";
import type { LoadPages } from "./change.js";
import type { PagePath } from "./page.js";

/** A stored page, or what one was. */
export interface PageRow {
  readonly path: PagePath;
  readonly page: Uint8Array;
  readonly row_hash: string;
}

/** The pages of one tree. */
export interface PageStore {
  /** @throws DamageError for a page that is not what was stored. */
  readonly load: LoadPages;
  /** Stores pages; those that are undefined are taken out. */
  save(pages: ReadonlyMap<PagePath, Uint8Array | undefined>): Promise<void>;
  /** Stores what {@link pageTexts} made of pages of this tree. */
  saveTexts(texts: Iterable<string>): Promise<void>;
}

/** Pages of one statement: 2 KiB each, as hex digits. */
const portionRows = 50;
/** Paths of one statement that looks for pages. */
const portionPaths = 1_000;

/**
 * Builds the store.
 *
 * @param tree address of the program whose fields the tree has; empty for the tree of the state.
 */
export function createPageStore(db: Queries, tree: string): PageStore {
  const { bytesOf, list } = db.dialect;
  // The list drives the query.
  const loadPages = db.prepare<PageRow>(
    `SELECT p.path, p.page, p.row_hash FROM ${list.table}
      CROSS JOIN tree_pages AS p WHERE p.path = ${list.text} AND p.tree = ?`,
  );
  const savePages = db.prepare(
    `INSERT INTO tree_pages (tree, path, page, row_hash)
      SELECT CAST(? AS varchar(45)), k.value ->> 0, ${bytesOf("(k.value ->> 1)")}, k.value ->> 2 FROM ${list.table} WHERE true
      ON CONFLICT (tree, path) DO UPDATE SET page = excluded.page, row_hash = excluded.row_hash`,
  );
  async function saveTexts(texts: Iterable<string>): Promise<void> {
    for (const text of texts) {
      await savePages(tree, text);
    }
  }

  return {
    async load(paths) {
      const found = new Map<PagePath, Uint8Array>();
      for (const some of inChunks(paths, portionPaths)) {
        const rows = await loadPages(JSON.stringify(some), tree);
        rows.forEach((row) => found.set(row.path, checkPage(tree, row)));
      }
      return found;
    },

    async save(pages) {
      await saveTexts(pageTexts(tree, pages));
      const gone = [...pages].filter(([, page]) => page === undefined).map(([path]) => path);
      for (const some of inChunks(gone)) {
        await db.run((sql) => sql("tree_pages").where({ tree }).whereIn("path", some).delete());
      }
    },

    saveTexts,
  };
}

/** Pages as texts, each of which is stored with one statement. Those that are undefined are in none. */
export function* pageTexts(
  tree: string,
  pages: ReadonlyMap<PagePath, Uint8Array | undefined>,
): Generator<string, void> {
  let portion: string[][] = [];
  for (const [path, page] of pages) {
    if (page !== undefined) {
      portion.push([
        path,
        Buffer.from(page.buffer, page.byteOffset, page.length).toString("hex"),
        hashPageRow({ tree, path, page }),
      ]);
    }
    if (portion.length === portionRows) {
      yield JSON.stringify(portion);
      portion = [];
    }
  }
  if (portion.length > 0) {
    yield JSON.stringify(portion);
  }
}

/** Takes all pages of trees out. */
export async function clearTrees(db: Queries, trees: readonly string[]): Promise<void> {
  for (const some of inChunks(trees)) {
    await db.run((sql) => sql("tree_pages").whereIn("tree", some).delete());
  }
}

/** The page of a row. Throws DamageError. */
export function checkPage(tree: string, { path, page, row_hash }: PageRow): Uint8Array {
  if (row_hash !== hashPageRow({ tree, path, page })) {
    throw new CorruptionError(
      `A page of the ${tree === "" ? "state tree" : `fields of the storage program ${tree}`} in the database is not what was stored.`,
    );
  }
  return page;
}
