/** Exports nullifiers and the commitment tree from a database to a snapshot, and imports them into another database. */
import type { SnapshotNullifier } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { fromHex32, toHex32 } from "../base/crypto/hash.js";
import type { Queries } from "../db/queries/database.js";
import { bulkInsert } from "../db/rows/bulk-changes.js";
import { hashNullifierRow, type NullifierColumns } from "../db/rows/row-hashes.js";
import { nullifierLeaf } from "../tree/state-leaves.js";
import { frontierOf, type FoldAll, growTree } from "./fold.js";
import type { BlockPosition } from "./merkle-tree.js";
import { checkNullifier } from "./nullifier-store.js";
import { createNodeStore, nodeIn, pagesOf } from "./node-store.js";
import { emptyNodes, fieldOrder, hashPair, toHex, treeDepth } from "./poseidon.js";
import {
  checkRoot,
  createTreeChanges,
  latestBlock,
  oldestKnownAt,
  rootColumns,
  type RootRow,
  type TreeChanges,
} from "./tree-store.js";

export interface CommitmentTree {
  readonly root: Uint8Array;
  readonly leafCount: number;
  /** Nodes above each {@link partLeaves} leaves. */
  readonly parts: Uint8Array[];
  /** Roots that transactions may name when they spend nullifiers. */
  readonly knownRoots: { readonly blockNumber: bigint; readonly leafCount: number }[];
}

const partLevels = 14;
/** Number of leaves that are downloaded at a time. */
const partLeaves = 2 ** partLevels;

const pageRows = 2_000;

/** Yields all nullifiers with their leaves of the state tree, in pages. */
export async function* exportNullifiers(db: Queries) {
  for (let last = ""; ;) {
    const after = last;
    const rows = await db.rows<NullifierColumns & { readonly row_hash: string }>((sql) =>
      sql("nullifiers")
        .where("hash", ">", after)
        .orderBy("hash")
        .limit(pageRows)
        .select("hash", "block_number", "transaction_hash", "row_hash"),
    );
    if (rows.length === 0) {
      return;
    }
    last = rows.at(-1)!.hash;
    yield rows.map((row) => {
      checkNullifier(row);
      const nullifier = {
        nullifier: fromHex32(row.hash),
        blockNumber: BigInt(row.block_number),
        transactionHash: fromHex32(row.transaction_hash),
      };
      return { leaf: nullifierLeaf(nullifier), nullifier };
    });
  }
}

export async function importNullifiers(db: Queries, nullifiers: readonly SnapshotNullifier[]): Promise<void> {
  const kinds = { hash: "text", block_number: "integer", transaction_hash: "text", row_hash: "text" } as const;
  const rows = nullifiers.map(({ nullifier, blockNumber, transactionHash }) => {
    const row = {
      hash: toHex32(nullifier),
      block_number: Number(blockNumber),
      transaction_hash: toHex32(transactionHash),
    };
    return [row.hash, row.block_number, row.transaction_hash, hashNullifierRow(row)];
  });
  await bulkInsert(db, "nullifiers", kinds, rows);
}

/** Reads the summary of the commitment tree for a snapshot. */
export async function exportCommitmentTree(db: Queries): Promise<CommitmentTree> {
  const roots = await db.rows<RootRow>((sql) =>
    sql.raw(
      `SELECT ${rootColumns} FROM merkle_roots WHERE block_number >= ${oldestKnownAt(db.dialect, latestBlock)} ORDER BY block_number`,
    ),
  );
  roots.forEach(checkRoot);
  const { root, leaf_count: leafCount } = roots.at(-1)!;
  const parts: Uint8Array[] = [];
  for (let from = 0; from < leafCount; from += partLeaves) {
    parts.push(fromHex32(toHex(await nodeOfPart(db, from, leafCount))));
  }
  return {
    root: fromHex32(root),
    leafCount,
    parts,
    knownRoots: roots.map((row) => ({ blockNumber: BigInt(row.block_number), leafCount: row.leaf_count })),
  };
}

/** Returns the node above the leaves of a part. The last part may be incomplete; empty positions complete it. */
async function nodeOfPart(db: Queries, from: number, leafCount: number): Promise<bigint> {
  const count = leafCount - from;
  if (count < partLeaves) {
    // Below this level, the peaks of the full tree are those of the last part.
    return frontierOf(count, await createTreeChanges(db).peaks(leafCount))[partLevels]!;
  }
  const node = [partLevels, from / partLeaves] as const;
  return BigInt(nodeIn(await createNodeStore(db).load(pagesOf([node])), ...node)!);
}

/** Returns true if the nodes above the parts hash to the root. */
export function partsHashToRoot({
  root,
  leafCount,
  parts,
}: Pick<CommitmentTree, "root" | "leafCount" | "parts">): boolean {
  if (parts.length !== Math.ceil(leafCount / partLeaves) || leafCount > 2 ** treeDepth || root.length !== 32) {
    return false;
  }
  let nodes = parts.map((part) => BigInt(toHex32(part)));
  for (let level = partLevels; level < treeDepth; level++) {
    const empty = emptyNodes()[level]!;
    nodes = Array.from({ length: Math.ceil(nodes.length / 2) }, (_, i) =>
      hashPair(nodes[2 * i]!, nodes[2 * i + 1] ?? empty),
    );
  }
  return toHex(nodes[0] ?? emptyNodes()[treeDepth]!) === toHex32(root);
}

/** Reads leaves of the tree in their order, 32 bytes each. */
export async function listLeaves(db: Queries, from: number, count: number): Promise<Uint8Array[]> {
  const leaves = Array.from({ length: count }, (_, i) => [0, from + i] as const);
  const pages = await createNodeStore(db).load(pagesOf(leaves));
  return leaves.map((leaf) => nodeIn(pages, ...leaf)).flatMap((hash) => (hash === undefined ? [] : [fromHex32(hash)]));
}

/** Part of the leaves to import, with the data to check it against. */
interface LeavesPart {
  readonly tree: CommitmentTree;
  readonly from: number;
  readonly leaves: readonly Uint8Array[];
  /** Returns the block of a number, and the root in its header. */
  readonly blockAndRootOf: (
    blockNumber: bigint,
  ) => Promise<{ readonly block: BlockPosition; readonly root: string | undefined }>;
  readonly foldAll: FoldAll;
}

/**
 * Result of an import: the leaves are stored, the leaves differ from those in the snapshot, or the snapshot itself is
 * invalid.
 */
type PartOutcome = "stored" | "wrong leaves" | "wrong snapshot";

/**
 * Stores a part of the leaves after the previous parts, and the known roots within the part. Unless the result is
 * `stored`, the caller must roll back everything that was written.
 */
export async function importLeaves(db: Queries, part: LeavesPart): Promise<PartOutcome> {
  const { tree, from, blockAndRootOf } = part;
  const changes = createTreeChanges(db);
  const leaves = part.leaves.map((leaf) => BigInt(toHex32(leaf)));
  if (leaves.length !== Math.min(partLeaves, tree.leafCount - from) || leaves.some((leaf) => leaf >= fieldOrder)) {
    return "wrong leaves";
  }
  const appended = await appendPart(changes, leaves, part);
  if (new Set(leaves).size !== leaves.length || toHex(appended.node) !== toHex32(tree.parts[from / partLeaves]!)) {
    return "wrong leaves";
  }
  for (const { runs } of appended.steps) {
    await changes.insertNodes(runs);
  }
  for (const { blockNumber, leafCount } of tree.knownRoots) {
    const step = appended.steps.find((step) => step.leafCount === leafCount);
    if (step !== undefined) {
      const { block, root } = await blockAndRootOf(blockNumber);
      if (root !== step.root) {
        return "wrong snapshot";
      }
      await changes.insertRoot(step, block);
    }
  }
  return "stored";
}

/** Computes the nodes and roots that the leaves add to the tree, one root after the other, without storing anything. */
async function appendPart(changes: TreeChanges, leaves: readonly bigint[], { tree, from, foldAll }: LeavesPart) {
  const end = from + leaves.length;
  const known = tree.knownRoots.map(({ leafCount }) => leafCount).filter((count) => count > from && count < end);
  const steps: Awaited<ReturnType<typeof growTree>>[] = [];
  let grown = { leafCount: from, peaks: await changes.peaks(from) };
  for (const leafCount of new Set([...known.sort((a, b) => a - b), end])) {
    const added = leaves.slice(grown.leafCount - from, leafCount - from);
    const step = await growTree(grown.leafCount, grown.peaks, added, foldAll);
    steps.push(step);
    grown = step;
  }
  const complete = steps
    .at(-1)!
    .runs.find(({ level }) => level === partLevels)
    ?.hashes.at(-1);
  return { steps, node: complete ?? frontierOf(leaves.length, grown.peaks)[partLevels]! };
}

/**
 * Returns true if the database contains all roots that spends may name after its latest block. Expects the latest block
 * to have the root of this tree.
 *
 * @param rootsSince returns the numbers of the blocks with a new root, starting at the given block.
 */
export async function hasAllKnownRoots(
  db: Queries,
  { knownRoots }: CommitmentTree,
  rootsSince: (blockNumber: bigint) => Promise<readonly bigint[]>,
): Promise<boolean> {
  const rows = await db.rows<RootRow>((sql) =>
    sql("merkle_roots").orderBy("block_number").select(sql.raw(rootColumns)),
  );
  const stored = rows.map((row) => BigInt(row.block_number));
  const first = knownRoots[0]?.blockNumber;
  if (first === undefined || stored.length < knownRoots.length) {
    return false;
  }
  const [oldest] = await db.rows<{ oldest: number }>((sql) =>
    sql.raw(`SELECT ${oldestKnownAt(db.dialect, latestBlock)} AS oldest`),
  );
  const since = await rootsSince(first);
  return BigInt(oldest!.oldest) >= first && since.every((number) => stored.includes(number));
}

/** Deletes all nullifiers, leaves and roots except the root of the empty tree. */
export async function clearZk(db: Queries): Promise<void> {
  await db.runAll((sql) => [
    ...["nullifiers", "commitments"].map((table) => sql(table).delete()),
    sql("merkle_roots").where("block_number", ">", 0).delete(),
  ]);
}
