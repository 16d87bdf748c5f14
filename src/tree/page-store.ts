/** Stores tree pages in the database. */
import { CorruptionError } from "../base/errors/corruption.js";
import { inChunks } from "../db/rows/chunks.js";
import type { Queries } from "../db/queries/database.js";
import { hashPageRow } from "../db/rows/row-hashes.js";
import type { LoadPages } from "./change.js";
import type { PagePath } from "./page.js";

/** Tree page as stored, with the hash that detects corruption. */
export interface PageRow {
  readonly path: PagePath;
  readonly page: Uint8Array;
  readonly row_hash: string;
}

/** Names in messages of the trees that do not belong to a program. */
const names: Readonly<Record<string, string>> = { "": "state tree", commitments: "commitment tree" };
/** Number of pages written by one statement; a page has up to 2 KiB, written as hex digits. */
const portionRows = 50;
const portionPaths = 1_000;

/**
 * Creates the page store of one tree.
 *
 * @param tree address of the program whose fields form the tree; empty for the state tree, `commitments` for the
 *   commitment tree.
 */
export function createPageStore(db: Queries, tree: string) {
  const { bytesOf, list } = db.dialect;
  // The list drives the query: in SQLite, CROSS JOIN fixes the join order.
  const loadPages = db.prepare<PageRow>(
    `SELECT p.path, p.page, p.row_hash FROM ${list.table}
      CROSS JOIN tree_pages AS p WHERE p.path = ${list.text} AND p.tree = ?`,
  );
  const savePages = db.prepare(
    `INSERT INTO tree_pages (tree, path, page, row_hash)
      SELECT CAST(? AS varchar(45)), k.value ->> 0, ${bytesOf("(k.value ->> 1)")}, k.value ->> 2 FROM ${list.table} WHERE true
      ON CONFLICT (tree, path) DO UPDATE SET page = excluded.page, row_hash = excluded.row_hash`,
  );

  /**
   * Loads the stored pages at these paths.
   *
   * @throws CorruptionError for a page that differs from its stored hash.
   */
  const load: LoadPages = async (paths) => {
    const found = new Map<PagePath, Uint8Array>();
    for (const chunk of inChunks(paths, portionPaths)) {
      const rows = await loadPages(JSON.stringify(chunk), tree);
      rows.forEach((row) => found.set(row.path, checkPage(tree, row)));
    }
    return found;
  };

  /** Stores the texts that {@link pageTexts} created from pages of this tree. */
  async function saveTexts(texts: Iterable<string>): Promise<void> {
    for (const text of texts) {
      await savePages(tree, text);
    }
  }

  return {
    load,
    saveTexts,
    /** Stores pages, and deletes pages that are undefined. */
    async save(pages: ReadonlyMap<PagePath, Uint8Array | undefined>): Promise<void> {
      await saveTexts(pageTexts(tree, pages));
      const removed = [...pages].filter(([, page]) => page === undefined).map(([path]) => path);
      for (const chunk of inChunks(removed)) {
        await db.run((sql) => sql("tree_pages").where({ tree }).whereIn("path", chunk).delete());
      }
    },
  };
}

/** Encodes pages as JSON texts, each of which one statement stores. Pages that are undefined are left out. */
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

export async function clearTrees(db: Queries, trees: readonly string[]): Promise<void> {
  for (const chunk of inChunks(trees)) {
    await db.run((sql) => sql("tree_pages").whereIn("tree", chunk).delete());
  }
}

export async function clearAllTrees(db: Queries): Promise<void> {
  await db.run((sql) => sql("tree_pages").delete());
}

/**
 * Returns the page of a row.
 *
 * @throws CorruptionError if the page differs from its stored hash.
 */
export function checkPage(tree: string, { path, page, row_hash }: PageRow): Uint8Array {
  if (row_hash !== hashPageRow({ tree, path, page })) {
    throw new CorruptionError(
      `A page of the ${names[tree] ?? `fields of the storage program ${tree}`} in the database is corrupt.`,
    );
  }
  return page;
}
