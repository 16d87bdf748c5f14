import { IMT } from "@zk-kit/imt";
import test from "ava";
import { poseidon2 } from "poseidon-lite/poseidon2";
import type { Database } from "../../src/db/queries/database.js";
import { inChunks } from "../../src/db/rows/chunks.js";
import type { Engine } from "../../src/db/queries/dialects.js";
import { frontierOf, growTree } from "../../src/zk/fold.js";
import type { MerklePath, MerkleTree } from "../../src/zk/merkle-tree.js";
import { createTreeChanges, createTreeStore } from "../../src/zk/tree-store.js";
import { fieldOrder, toHex } from "../../src/zk/poseidon.js";
import { createZkThreads } from "../../src/zk/worker-pool.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { insertLeaves } from "../helpers/chain/seed.js";
import type { Teardown } from "../helpers/nodes/teardown.js";

const engines = await prepareEngines();

/** Computes the root from a leaf and its path, independently of the tree. */
function foldPath(leaf: bigint, { siblings, pathIndices }: MerklePath): string {
  const root = siblings.reduce((node, sibling, level) => {
    const pair = [node, BigInt(sibling)];
    return poseidon2(pathIndices[level] === 0 ? pair : pair.reverse());
  }, leaf);
  return toHex(root);
}

interface Fixture {
  readonly database: Database;
  readonly tree: MerkleTree;
  /** A reference implementation with the same leaves. */
  readonly reference: IMT;
  readonly leaves: bigint[];
  /** Adds a block with this many leaves. */
  readonly addLeaves: (count: number) => Promise<void>;
  /** Adds this many blocks without leaves. */
  readonly addEmptyBlocks: (blocks: number) => Promise<void>;
  /** Sets the time of the next block, in ms. */
  readonly setTime: (timeMs: number) => void;
}

/** @param blockMs - Time between blocks. With the default, 256 blocks take longer than ten minutes. */
async function open(t: Teardown, engine: Engine, blockMs = 3_000): Promise<Fixture> {
  const database = await engines.open(t, engine);
  const reference = new IMT(poseidon2, 20, 0n, 2);
  const leaves: bigint[] = [];
  let block = -1;
  let [nextMs, timeMs] = [0, 0];
  const addEmptyBlocks = async (blocks: number): Promise<void> => {
    const rows = Array.from({ length: blocks }, () => {
      block++;
      [timeMs, nextMs] = [nextMs, nextMs + blockMs];
      return { number: block, hash: String(block), timestamp_ms: timeMs };
    });
    await database.write.runAll((sql) => inChunks(rows).map((chunk) => sql("blocks").insert(chunk)));
  };
  await addEmptyBlocks(1);
  return {
    database,
    tree: createTreeStore(database.read),
    reference,
    leaves,
    addEmptyBlocks,
    setTime: (ms) => (nextMs = ms),
    addLeaves: async (count) => {
      const added = Array.from({ length: count }, (_, i) => BigInt(leaves.length + i + 1) ** 41n % fieldOrder);
      await addEmptyBlocks(1);
      await insertLeaves(database, added, block, timeMs);
      added.forEach((leaf) => reference.insert(leaf));
      leaves.push(...added);
    },
  };
}

async function pathOf(tree: MerkleTree, leaf: bigint, root?: string): Promise<MerklePath> {
  const search = await tree.path(toHex(leaf), root);
  if (search.missing !== undefined) {
    throw new Error(`missing: ${search.missing}`);
  }
  return search;
}

for (const engine of engines.names) {
  test(`${engine}: batches of any size give the same tree and proofs as zk-kit`, async (t) => {
    const { tree, reference, leaves, addLeaves } = await open(t, engine);
    t.deepEqual(await tree.root(), { root: toHex(reference.root as bigint), blockNumber: 0n, leafCount: 0 });
    t.deepEqual(await tree.path(toHex(1n), undefined), { missing: "commitment" });
    let seed = 7;
    const random = (bound: number): number => (seed = (seed * 48_271) % 2_147_483_647) % bound;
    for (const count of [1, 1, 2, 3, 1, 70, ...Array.from({ length: 12 }, () => 1 + random(40))]) {
      await addLeaves(count);
      const { root, leafCount } = await tree.root();
      t.is(root, toHex(reference.root as bigint));
      t.is(leafCount, leaves.length);
      for (const index of [0, leaves.length - 1, random(leaves.length), random(leaves.length)]) {
        const path = await pathOf(tree, leaves[index]!);
        const expected = reference.createProof(index);
        t.deepEqual(
          [path.root, path.leafIndex, path.siblings, path.pathIndices],
          [root, index, expected.siblings.map(([sibling]) => toHex(sibling as bigint)), expected.pathIndices],
        );
        t.is(foldPath(leaves[index]!, path), root);
      }
    }
  });

  test(`${engine}: a leaf has a proof for each root since its block, for 256 blocks`, async (t) => {
    const { database, tree, leaves, addLeaves, addEmptyBlocks } = await open(t, engine);
    const roots: string[] = [];
    for (const count of [1, 4, 3, 1, 9]) {
      await addLeaves(count);
      roots.push((await tree.root()).root);
    }
    for (const [i, root] of roots.entries()) {
      const block = BigInt(i + 1);
      const after = (await tree.rootAfter(block))!;
      t.like(after, { root, blockNumber: block });
      for (const [index, leaf] of leaves.entries()) {
        if (index < after.leafCount) {
          const path = await pathOf(tree, leaf, root);
          t.like(path, { leafIndex: index, root, blockNumber: block });
          t.is(foldPath(leaf, path), root);
        } else {
          t.deepEqual(await tree.path(toHex(leaf), root), { missing: "commitment under this root" });
        }
      }
    }
    t.is(await tree.rootAfter(6n), undefined);

    // Block 2 replaces the first root, which is known while block 1 is one of the last 256.
    await addEmptyBlocks(251);
    t.truthy(await tree.rootAfter(1n));
    t.is((await pathOf(tree, leaves[0]!, roots[0]!)).root, roots[0]!);
    await addEmptyBlocks(1);
    t.is(await tree.rootAfter(1n), undefined);
    t.deepEqual(await tree.path(toHex(leaves[0]!), roots[0]), { missing: "root" });
    t.is((await pathOf(tree, leaves[0]!, roots[1]!)).root, roots[1]!);
    // For the next block, 258, the roots after blocks 2 to 257 are known.
    const changes = createTreeChanges(database.read);
    const next = { number: 258n, timeMs: 258 * 3_000 };
    t.false(await changes.isKnownRoot(roots[0]!, next));
    t.true(await changes.isKnownRoot(roots[1]!, next));

    await addLeaves(1);
    const rows = await database.read.rows((sql) => sql("merkle_roots"));
    t.is(rows.length, 4, "rows of unknown roots are deleted");
    t.is((await pathOf(tree, leaves[0]!, roots[2]!)).root, roots[2]!);
  });

  test(`${engine}: a root is known for ten minutes after it was replaced, whatever the number of blocks`, async (t) => {
    const { database, tree, leaves, addLeaves, addEmptyBlocks, setTime } = await open(t, engine, 250);
    const changes = createTreeChanges(database.read);
    await addLeaves(2);
    const { root } = await tree.root();
    const [replacedMs, minutes] = [500, 10 * 60_000];
    await addLeaves(1);
    await addEmptyBlocks(300);
    setTime(replacedMs + minutes);
    await addEmptyBlocks(1);
    t.like(await tree.rootAfter(1n), { root, blockNumber: 1n });
    t.is((await pathOf(tree, leaves[1]!, root)).root, root);
    t.is(await tree.rootAfter(304n), undefined);
    // The time of the block counts, not the clock.
    t.true(await changes.isKnownRoot(root, { number: 304n, timeMs: replacedMs + minutes }));
    t.false(await changes.isKnownRoot(root, { number: 304n, timeMs: replacedMs + minutes + 1 }));

    setTime(replacedMs + minutes);
    await addLeaves(1);
    t.is((await pathOf(tree, leaves[1]!, root)).root, root, "a known root is retained");
    setTime(replacedMs + minutes + 1);
    await addLeaves(1);
    t.is(await tree.rootAfter(1n), undefined);
    t.deepEqual(await tree.path(toHex(leaves[1]!), root), { missing: "root" });
    t.is((await tree.rootAfter(2n))!.leafCount, 3, "replaced only now");
    const rows = await database.read.rows<{ block_number: number }>((sql) =>
      sql("merkle_roots").orderBy("block_number").select("block_number"),
    );
    t.deepEqual(
      rows.map(({ block_number }) => block_number),
      [2, 304, 305],
    );
  });
}

test("a large block is hashed in pieces on worker threads, with the same result", async (t) => {
  const workerPool = createZkThreads(2);
  t.teardown(() => workerPool.stop());
  const leaves = Array.from({ length: 5_000 }, (_, i) => BigInt(i + 1));
  const reference = new IMT(poseidon2, 20, 0n, 2, leaves);
  let tree = { leafCount: 0, peaks: {}, root: "" };
  // The batches start and end within pieces.
  for (const end of [3, 4_503, 5_000]) {
    tree = await growTree(tree.leafCount, tree.peaks, leaves.slice(tree.leafCount, end), workerPool.foldAll);
  }
  t.is(tree.root, toHex(reference.root as bigint));
});

test("a full tree has a root, and no frontier", (t) => {
  t.deepEqual(frontierOf(2 ** 20, { 20: 5n }), new Array(21).fill(undefined));
});
