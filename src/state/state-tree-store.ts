/** Database store of the state tree: current pages, and the earlier pages before each of the last blocks. */
import { inChunks } from "../db/rows/chunks.js";
import type { Queries } from "../db/queries/database.js";
import { changeTree, type LeafChange, type LoadPages } from "../tree/change.js";
import type { PagePath } from "../tree/page.js";
import { checkPage, createPageStore, type PageRow } from "../tree/page-store.js";

/** Name of the state tree; all other trees belong to programs. */
const tree = "";

/** Number of latest blocks whose state can be proved. */
export const provenBlocks = 256;

/** Interval in blocks between deletions of earlier pages that no proof can need. */
const pruneInterval = 16;

export type StateTreeChanges = ReturnType<typeof createStateTreeChanges>;

/** Creates the changes to the state tree, inside the transaction of a block. */
export function createStateTreeChanges(db: Queries) {
  const store = createPageStore(db, tree);
  const { list } = db.dialect;

  const copyPages = db.prepare(
    `INSERT INTO tree_undo (path, block_number, page, row_hash)
      SELECT ${list.text}, CAST(? AS bigint), p.page, p.row_hash
      FROM ${list.table} LEFT JOIN tree_pages p ON p.tree = '' AND p.path = ${list.text}`,
  );

  return {
    /**
     * Applies all changes of a block and returns the new root.
     *
     * @param changes at most one change for each key.
     */
    async change(blockNumber: bigint, changes: readonly LeafChange[]): Promise<Uint8Array> {
      const number = Number(blockNumber);
      const { root, pages } = await changeTree(store.load, changes);
      for (const chunk of inChunks([...pages.keys()], 1_000)) {
        await copyPages(number, JSON.stringify(chunk));
      }
      await store.save(pages);
      if (number % pruneInterval === 0) {
        const oldest = number - provenBlocks + 1;
        await db.run((sql) => sql("tree_undo").where("block_number", "<=", oldest).delete());
      }
      return root;
    },
  };
}

/** Page as of a block: saved by the first later block that changed the page, otherwise the current page. */
type HistoricPageRow = { readonly path: PagePath } & { readonly [name in "page" | "row_hash"]: PageRow[name] | null };

export type StateTree = ReturnType<typeof createStateTreeStore>;

/** Creates the reads of the state tree, as of one of the last blocks. */
export function createStateTreeStore({ dialect: { list }, prepare }: Queries) {
  // Single query, so all pages come from one snapshot of the database, even if a block is applied meanwhile.
  const readPages = prepare<HistoricPageRow>(`SELECT ${list.text} AS path,
      CASE WHEN u.path IS NULL THEN p.page ELSE u.page END AS page,
      CASE WHEN u.path IS NULL THEN p.row_hash ELSE u.row_hash END AS row_hash
    FROM ${list.table} LEFT JOIN tree_pages p ON p.tree = '' AND p.path = ${list.text}
    LEFT JOIN tree_undo u ON u.path = ${list.text} AND u.block_number = (
      SELECT min(v.block_number) FROM tree_undo v WHERE v.path = ${list.text} AND v.block_number > ?)`);
  return {
    /** Returns a loader of pages as of one of the last {@link provenBlocks} blocks. */
    pagesAfter:
      (blockNumber: bigint): LoadPages =>
      async (paths) => {
        const found = new Map<PagePath, Uint8Array>();
        for (const { path, page, row_hash } of await readPages(JSON.stringify(paths), Number(blockNumber))) {
          if (page !== null && row_hash !== null) {
            found.set(path, checkPage(tree, { path, page, row_hash }));
          }
        }
        return found;
      },
  };
}
