/** The tree of the state in the database, as it is, with what its pages were before each of the last blocks. */
import { inChunks } from "../db/chunks.js";
import type { Queries } from "../db/database.js";
import { changeTree } from "../tree/change.js";
import type { PagePath } from "../tree/page.js";
import { checkPage, createPageStore, type PageRow } from "../tree/page-store.js";
import { provenBlocks, type StateTree, type StateTreeChanges } from "./state-tree.js";

/** Of all trees, the one that is no program's. */
const tree = "";

/** Builds the changes, inside the transaction of a block. */
export function createStateTreeChanges(db: Queries): StateTreeChanges {
  const store = createPageStore(db, tree);
  const { list } = db.dialect;

  /** Keeps what pages are now. */
  async function keep(blockNumber: number, paths: readonly PagePath[]): Promise<void> {
    for (const some of inChunks(paths, 1_000)) {
      await db.run((sql) =>
        sql.raw(
          `INSERT INTO tree_undo (path, block_number, page, row_hash)
            SELECT ${list.text}, CAST(? AS bigint), p.page, p.row_hash
            FROM ${list.table} LEFT JOIN tree_pages p ON p.tree = '' AND p.path = ${list.text}`,
          [blockNumber, JSON.stringify(some)],
        ),
      );
    }
  }

  return {
    async change(blockNumber, changes) {
      const number = Number(blockNumber);
      const { root, pages } = await changeTree(store.load, changes);
      await keep(number, [...pages.keys()]);
      await store.save(pages);
      await db.run((sql) =>
        sql("tree_undo")
          .where("block_number", "<=", number - provenBlocks + 1)
          .delete(),
      );
      return root;
    },
  };
}

/** A page that is not what it is now. */
type UndoRow = { readonly path: PagePath } & { readonly [name in "page" | "row_hash"]: PageRow[name] | null };

/** Builds the reads. */
export function createStateTreeStore(db: Queries): StateTree {
  const store = createPageStore(db, tree);
  return {
    pagesAfter: (blockNumber) => async (paths) => {
      const number = Number(blockNumber);
      const found = new Map<PagePath, Uint8Array>();
      const unchanged: PagePath[] = [];
      // A page was what the first block after that one found.
      const undone = await db.rows<UndoRow>((sql) =>
        sql("tree_undo as u")
          .whereIn("u.path", paths)
          .where(
            "u.block_number",
            sql("tree_undo as v")
              .where("v.path", sql.ref("u.path"))
              .where("v.block_number", ">", number)
              .min("v.block_number"),
          )
          .select("u.path", "u.page", "u.row_hash"),
      );
      const before = new Map(undone.map((row) => [row.path, row]));
      for (const path of paths) {
        const row = before.get(path);
        if (row === undefined) {
          unchanged.push(path);
        } else if (row.page !== null && row.row_hash !== null) {
          found.set(path, checkPage(tree, { path, page: row.page, row_hash: row.row_hash }));
        }
      }
      const rest = await store.load(unchanged);
      rest.forEach((page, path) => found.set(path, page));
      return found;
    },
  };
}
