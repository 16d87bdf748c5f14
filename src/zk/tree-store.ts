/** Commitment tree in the database. */
import { CorruptionError } from "../base/errors/corruption.js";
import { createLruCache } from "../base/caches/lru-cache.js";
import { batch, prepareBatch } from "../db/rows/batch.js";
import { insertRows } from "../db/rows/bulk-changes.js";
import type { Queries } from "../db/queries/database.js";
import type { Dialect } from "../db/queries/dialects.js";
import { hashRootRow, type RootColumns } from "../db/rows/row-hashes.js";
import type { PagePath } from "../tree/page.js";
import { type FoldAll, growTree, type NodeRun, peakLevels, type Peaks, rootOf } from "./fold.js";
import {
  type BlockPosition,
  knownBlocks,
  knownMinutes,
  type MerklePath,
  type MerkleRoot,
  type MerkleTree,
} from "./merkle-tree.js";
import { createNodeStore, isUpperAndComplete, nodeIn, type NodePages, pagesAbove, pagesOf } from "./node-store.js";
import { emptyNodes, toHex, treeDepth } from "./poseidon.js";

const hashBytes = 32;
/** Limit on the cached pages of the upper levels, of about 1,200 bytes each. Complete pages never change. */
const maxCachedPages = 2_048;
const knownMs = knownMinutes * 60_000;

/** SQL for the number and the time of the latest block. */
export const latestBlock = {
  number: "(SELECT max(number) FROM blocks)",
  timeMs: "(SELECT timestamp_ms FROM blocks ORDER BY number DESC LIMIT 1)",
};

/** SQL for the number and the time of a given block, with a parameter for each. */
const givenBlock: typeof latestBlock = { number: "CAST(? AS bigint)", timeMs: "CAST(? AS bigint)" };

/**
 * Returns SQL for the block of the oldest known root. A root is current until the next root. The oldest known root is
 * therefore the older of two: the root after the first of the last {@link knownBlocks} blocks, or the root at the start
 * of the last {@link knownMinutes} minutes.
 *
 * @param latest SQL for the latest block. Its number appears before its time, so parameters must have this order.
 */
export function oldestKnownAt({ greater, lesser }: Dialect, latest: typeof latestBlock): string {
  const firstBlock = greater(`${latest.number} - ${knownBlocks - 1}`, "0");
  const byBlocks = `(SELECT max(block_number) FROM merkle_roots WHERE block_number <= ${firstBlock})`;
  const byTime = `(SELECT block_number FROM merkle_roots WHERE timestamp_ms < ${latest.timeMs} - ${knownMs}
    ORDER BY timestamp_ms DESC, block_number DESC LIMIT 1)`;
  return lesser(byBlocks, `coalesce(${byTime}, 0)`);
}

const blockParameters = ({ number, timeMs }: BlockPosition): [number, number] => [Number(number), timeMs];

export type RootRow = RootColumns & { readonly edge: Buffer; readonly row_hash: string };

export const rootColumns = "block_number, root, timestamp_ms, leaf_count, edge, row_hash";
const latestRoot = `SELECT ${rootColumns} FROM merkle_roots ORDER BY block_number DESC LIMIT 1`;
const insertedRootColumns = {
  ...({ block_number: "integer", root: "text", timestamp_ms: "integer", leaf_count: "integer" } as const),
  ...({ edge: "bytes", row_hash: "text" } as const),
};

/** Result row of a search for a path; `root` is null if the root is not known. */
type PathRow = { readonly [name in keyof RootRow]: name extends "root" ? string | null : RootRow[name] } & {
  readonly slot: number;
  readonly leaf_index: number | null;
};

export function createTreeStore(db: Queries): MerkleTree {
  const { dialect, prepare } = db;
  // Computed at startup, so that no request for a path waits for the hash to be compiled.
  const emptySiblings = emptyNodes().slice(0, treeDepth).map(toHex);
  const latest = prepare<RootRow>(latestRoot);
  const after = prepare<RootRow>(
    `SELECT ${rootColumns} FROM merkle_roots
      WHERE block_number <= ? AND CAST(? AS bigint) <= ${latestBlock.number}
        AND (CAST(? AS bigint) > ${latestBlock.number} - ${knownBlocks}
          OR (SELECT timestamp_ms FROM blocks WHERE number = CAST(? AS bigint) + 1) >= ${latestBlock.timeMs} - ${knownMs})
      ORDER BY block_number DESC LIMIT 1`,
  );
  const findLeaf = prepareBatch<PathRow>(
    db,
    ({ table, slot }) => `SELECT ${slot} AS slot, c.leaf_index, ${rootColumns.replace(/\w+/g, "r.$&")}
      FROM ${table}
      LEFT JOIN commitments c ON c.commitment = ${dialect.bytesOf("k.value ->> 0")}
      LEFT JOIN merkle_roots r ON r.block_number = CASE WHEN k.value ->> 1 = ''
        THEN (SELECT max(block_number) FROM merkle_roots)
        ELSE (SELECT block_number FROM merkle_roots
          WHERE root = k.value ->> 1 AND block_number >= ${oldestKnownAt(dialect, latestBlock)}) END`,
  );
  const { load } = createNodeStore(db);
  const upper = createLruCache<Uint8Array>(maxCachedPages);
  // Paths that are read together share pages.
  const findPages = batch<readonly PagePath[], NodePages>(async (paths) => {
    const pages = new Map<PagePath, Uint8Array>();
    const missing = [...new Set(paths.flat())].filter((path) => {
      const page = upper.get(path);
      return page === undefined || !pages.set(path, page);
    });
    for (const [path, page] of await load(missing)) {
      pages.set(path, page);
      if (isUpperAndComplete(path, page)) {
        upper.set(path, page);
      }
    }
    return paths.map(() => pages);
  });
  return {
    async root() {
      const [row] = await latest();
      return toRoot(row!);
    },

    async rootAfter(blockNumber) {
      if (blockNumber > BigInt(Number.MAX_SAFE_INTEGER)) {
        return undefined;
      }
      const number = Number(blockNumber);
      const [row] = await after(number, number, number, number);
      return row && toRoot(row);
    },

    async path(commitment, root = "") {
      const row = (await findLeaf([commitment.slice(2), root]))!;
      if (row.root === null || row.leaf_index === null) {
        return { missing: row.leaf_index === null ? "commitment" : "root" };
      }
      const { leaf_count } = checkRoot({ ...row, root: row.root });
      if (row.leaf_index >= leaf_count) {
        return { missing: "commitment under this root" };
      }
      const pages = (await findPages(pagesAbove(row.leaf_index)))!;
      const path = toPath(row, row.leaf_index, row.root, emptySiblings, pages);
      if (path === undefined || nodeIn(pages, 0, row.leaf_index) !== commitment) {
        throw new CorruptionError(
          `The path of commitment ${commitment} in the database does not lead to the root ${row.root}: nodes of the tree are corrupt.`,
        );
      }
      return { commitment, ...path };
    },
  };
}

/** Tree as seen and changed by blocks. */
export type TreeChanges = ReturnType<typeof createTreeChanges>;

/** Creates the changes, inside the transaction of a block. The reads among them also work outside a transaction. */
export function createTreeChanges(db: Queries) {
  const { dialect } = db;
  /** Prefetched commitments: true if the commitment was in the tree before the block. */
  const prefetched = new Map<string, boolean>();
  const findLatest = db.prepare<RootRow>(latestRoot);
  const nodes = createNodeStore(db);
  const deleteOldRoots = db.prepare(
    `DELETE FROM merkle_roots WHERE block_number < ${oldestKnownAt(dialect, givenBlock)}`,
  );
  const findKnownRoot = db.prepare(
    `SELECT 1 FROM merkle_roots WHERE root = ? AND block_number >= ${oldestKnownAt(dialect, givenBlock)}`,
  );

  return {
    async prefetch(commitments: readonly string[]): Promise<void> {
      const found = await findCommitments(db, commitments);
      commitments.forEach((commitment) => prefetched.set(commitment, found.has(commitment)));
    },

    /** Returns true if a commitment was in the tree before the block. */
    has: async (commitment: string): Promise<boolean> =>
      prefetched.get(commitment) ?? (await findCommitments(db, [commitment])).has(commitment),

    /**
     * Returns true if a root was current after one of the {@link knownBlocks} blocks before this one. Roots that were
     * current at any time within {@link knownMinutes} minutes before this block's time count as well.
     */
    async isKnownRoot(root: string, { number, timeMs }: BlockPosition): Promise<boolean> {
      return (await findKnownRoot(root, ...blockParameters({ number: number - 1n, timeMs }))).length > 0;
    },

    async latest(): Promise<MerkleRoot> {
      const [row] = await findLatest();
      return toRoot(row!);
    },

    /** Returns, for each level with an odd number of complete nodes, the last of these. */
    async peaks(leafCount: number): Promise<Peaks> {
      const peaks = peakLevels(leafCount).map(([level, complete]) => [level, complete - 1] as const);
      const pages = await nodes.load(pagesOf(peaks));
      const found = peaks.map(([level, position]) => [level, nodeIn(pages, level, position)] as const);
      return Object.fromEntries(found.flatMap(([level, hash]) => (hash === undefined ? [] : [[level, BigInt(hash)]])));
    },

    /** Stores complete nodes. The first run must contain the leaves. */
    async insertNodes(runs: readonly NodeRun[]): Promise<void> {
      const leaves = runs[0]!;
      await insertRows(
        db,
        "commitments",
        { commitment: "bytes", leaf_index: "integer" },
        leaves.hashes.map((leaf, i) => [toHex(leaf).slice(2), leaves.position + i]),
      );
      await nodes.insert(runs);
    },

    /** Stores a root with its frontier, and deletes roots that are no longer known. */
    async insertRoot({ root, leafCount, frontier }: NewRoot, block: BlockPosition): Promise<void> {
      const [number, timeMs] = blockParameters(block);
      const bytes = Buffer.concat(frontier.map((node) => Buffer.from(toHex(node).slice(2), "hex")));
      const row = { block_number: number, root, timestamp_ms: timeMs, leaf_count: leafCount, edge: bytes };
      await insertRows(db, "merkle_roots", insertedRootColumns, [
        [number, root, timeMs, leafCount, bytes.toString("hex"), hashRootRow(row)],
      ]);
      await deleteOldRoots(number, timeMs);
    },
  };
}

type NewRoot = Pick<Awaited<ReturnType<typeof growTree>>, "root" | "leafCount" | "frontier">;

/**
 * Appends leaves that are not in the tree yet, and returns the new root.
 *
 * @param block block that adds the leaves.
 * @param latest the latest root, if the caller has it.
 * @throws CorruptionError if the stored nodes do not lead to the latest root.
 */
export async function appendLeaves(
  tree: TreeChanges,
  { leaves, block, foldAll }: { leaves: readonly bigint[]; block: BlockPosition; foldAll: FoldAll },
  latest?: MerkleRoot,
): Promise<Pick<MerkleRoot, "root" | "leafCount">> {
  const before = latest ?? (await tree.latest());
  const peaks = await tree.peaks(before.leafCount);
  if (rootOf(before.leafCount, peaks) !== before.root) {
    throw new CorruptionError("The nodes of the commitment tree in the database do not lead to its latest root.");
  }
  const after = await growTree(before.leafCount, peaks, leaves, foldAll);
  await tree.insertNodes(after.runs);
  await tree.insertRoot(after, block);
  return after;
}

async function findCommitments(db: Queries, commitments: readonly string[]): Promise<Set<string>> {
  const { list, bytesOf } = db.dialect;
  const find = db.prepare<{ commitment: string }>(
    `SELECT ${list.text} AS commitment FROM ${list.table}
      CROSS JOIN commitments c WHERE c.commitment = ${bytesOf(`substr(${list.text}, 3)`)}`,
  );
  const rows = commitments.length === 0 ? [] : await find(JSON.stringify(commitments));
  return new Set(rows.map(({ commitment }) => commitment));
}

/**
 * Checks a root against its checksum.
 *
 * @throws CorruptionError
 */
export function checkRoot(row: RootRow): RootRow {
  if (row.row_hash !== hashRootRow(row)) {
    throw new CorruptionError(
      `The root of the commitment tree after block ${row.block_number} in the database is corrupt.`,
    );
  }
  return row;
}

function toRoot(row: RootRow): MerkleRoot {
  checkRoot(row);
  return { root: row.root, blockNumber: BigInt(row.block_number), leafCount: row.leaf_count };
}

/** Returns the path of a leaf; undefined if a node is missing. */
function toPath(
  { leaf_count: leafCount, edge, block_number }: PathRow,
  leafIndex: number,
  root: string,
  emptySiblings: readonly string[],
  pages: NodePages,
): Omit<MerklePath, "commitment"> | undefined {
  const siblings = emptySiblings.map((empty, level) => {
    const position = (leafIndex >> level) ^ 1;
    const first = position * 2 ** level;
    if (first >= leafCount) {
      return empty;
    }
    // A stored node may be later than the root. The node is complete under the root only if all of its leaves are.
    return first + 2 ** level <= leafCount ? nodeIn(pages, level, position) : frontierHash(edge, level);
  });
  if (!siblings.every((sibling) => sibling !== undefined)) {
    return undefined;
  }
  return {
    leafIndex,
    siblings,
    pathIndices: siblings.map((_, level) => (leafIndex >> level) & 1),
    root,
    blockNumber: BigInt(block_number),
  };
}

function frontierHash(edge: Buffer, level: number): string {
  return `0x${edge.subarray((level - 1) * hashBytes, level * hashBytes).toString("hex")}`;
}
