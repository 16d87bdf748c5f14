import { IMT } from "@zk-kit/imt";
import test from "ava";
import { poseidon2 } from "poseidon-lite/poseidon2";
import type { Database } from "../../src/db/queries/database.js";
import { inChunks } from "../../src/db/rows/chunks.js";
import type { Engine } from "../../src/db/queries/dialects.js";
import type { MerklePath, MerkleTree } from "../../src/zk/merkle-tree.js";
import { createTreeChanges, createTreeStore } from "../../src/zk/tree-store.js";
import { fieldOrder, toHex } from "../../src/zk/poseidon.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { insertLeaves } from "../helpers/chain/seed.js";
import type { Teardown } from "../helpers/nodes/teardown.js";

const engines = await prepareEngines();

/** Leads a leaf to a root as another program would. */
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
  /** Another implementation with the same leaves. */
  readonly other: IMT;
  readonly leaves: bigint[];
  /** Adds so many leaves as the next block. */
  readonly grow: (count: number) => Promise<void>;
  /** The next blocks add none. */
  readonly pass: (blocks: number) => Promise<void>;
  /** The next block comes at this time. */
  readonly setTime: (timeMs: number) => void;
}

/** @param blockMs - Time from block to block; without it, so long that the window of time is shorter than that of blocks. */
async function open(t: Teardown, engine: Engine, blockMs = 3_000): Promise<Fixture> {
  const database = await engines.open(t, engine);
  const other = new IMT(poseidon2, 20, 0n, 2);
  const leaves: bigint[] = [];
  let block = -1;
  let [nextMs, timeMs] = [0, 0];
  const pass = async (blocks: number): Promise<void> => {
    const rows = Array.from({ length: blocks }, () => {
      block++;
      [timeMs, nextMs] = [nextMs, nextMs + blockMs];
      return { number: block, hash: String(block), timestamp_ms: timeMs };
    });
    await database.write.runAll((sql) => inChunks(rows).map((some) => sql("blocks").insert(some)));
  };
  await pass(1);
  return {
    database,
    tree: createTreeStore(database.read),
    other,
    leaves,
    pass,
    setTime: (ms) => (nextMs = ms),
    grow: async (count) => {
      const added = Array.from({ length: count }, (_, i) => BigInt(leaves.length + i + 1) ** 41n % fieldOrder);
      await pass(1);
      await insertLeaves(database, added, block, timeMs);
      added.forEach((leaf) => other.insert(leaf));
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
  test(`${engine}: the empty tree has its known root, at block 0`, async (t) => {
    const { tree, other } = await open(t, engine);
    t.deepEqual(await tree.root(), { root: toHex(other.root as bigint), blockNumber: 0n, leafCount: 0 });
    t.deepEqual(await tree.path(toHex(1n), undefined), { missing: "commitment" });
  });

  test(`${engine}: batches of any size give the tree that zk-kit gives, and its proofs`, async (t) => {
    const { tree, other, leaves, grow } = await open(t, engine);
    let seed = 7;
    const random = (bound: number): number => (seed = (seed * 48_271) % 2_147_483_647) % bound;
    for (const count of [1, 1, 2, 3, 1, 70, ...Array.from({ length: 12 }, () => 1 + random(40))]) {
      await grow(count);
      const { root, leafCount } = await tree.root();
      t.is(root, toHex(other.root as bigint));
      t.is(leafCount, leaves.length);
      for (const index of [0, leaves.length - 1, random(leaves.length), random(leaves.length)]) {
        const path = await pathOf(tree, leaves[index]!);
        const expected = other.createProof(index);
        t.deepEqual(
          [path.root, path.leafIndex, path.siblings, path.pathIndices],
          [root, index, expected.siblings.map(([sibling]) => toHex(sibling as bigint)), expected.pathIndices],
        );
        t.is(foldPath(leaves[index]!, path), root);
      }
    }
  });

  test(`${engine}: a proof leads to no root when its leaf or any sibling is another one`, async (t) => {
    const { tree, leaves, grow } = await open(t, engine);
    await grow(11);
    const path = await pathOf(tree, leaves[6]!);
    t.is(foldPath(leaves[6]!, path), path.root);
    t.not(foldPath(leaves[5]!, path), path.root);
    for (let level = 0; level < 20; level++) {
      const siblings = path.siblings.with(level, toHex(BigInt(path.siblings[level]!) ^ 1n));
      t.not(foldPath(leaves[6]!, { ...path, siblings }), path.root);
    }
  });

  test(`${engine}: leaves prove themselves under every root since they came, for 256 blocks`, async (t) => {
    const { database, tree, leaves, grow, pass } = await open(t, engine);
    const roots: string[] = [];
    for (const count of [1, 4, 3, 1, 9]) {
      await grow(count);
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

    // The first root holds until block 2: it is known while block 1 is among the last 256.
    await pass(251);
    t.truthy(await tree.rootAfter(1n));
    t.is((await pathOf(tree, leaves[0]!, roots[0]!)).root, roots[0]!);
    await pass(1);
    t.is(await tree.rootAfter(1n), undefined);
    t.deepEqual(await tree.path(toHex(leaves[0]!), roots[0]), { missing: "root" });
    t.is((await pathOf(tree, leaves[0]!, roots[1]!)).root, roots[1]!);
    // For the next block, 258, that which was current after one of the 256 before it is known: blocks 2 to 257.
    const newest = createTreeChanges(database.read);
    const next = { number: 258n, timeMs: 258 * 3_000 };
    t.false(await newest.isKnownRoot(roots[0]!, next));
    t.true(await newest.isKnownRoot(roots[1]!, next));

    await grow(1);
    const kept = await database.read.rows((sql) => sql("merkle_roots"));
    t.is(kept.length, 4, "rows of roots that are not known any more are gone");
    t.is((await pathOf(tree, leaves[0]!, roots[2]!)).root, roots[2]!);
  });

  test(`${engine}: however many blocks there are, a root is known for ten minutes after the next one came`, async (t) => {
    const { database, tree, leaves, grow, pass, setTime } = await open(t, engine, 250);
    const newest = createTreeChanges(database.read);
    await grow(2);
    const { root } = await tree.root();
    const [replacedMs, minutes] = [500, 10 * 60_000];
    await grow(1);
    await pass(300);
    setTime(replacedMs + minutes);
    await pass(1);
    t.like(await tree.rootAfter(1n), { root, blockNumber: 1n });
    t.is((await pathOf(tree, leaves[1]!, root)).root, root);
    t.is(await tree.rootAfter(304n), undefined);
    // A block counts by its own time.
    t.true(await newest.isKnownRoot(root, { number: 304n, timeMs: replacedMs + minutes }));
    t.false(await newest.isKnownRoot(root, { number: 304n, timeMs: replacedMs + minutes + 1 }));

    setTime(replacedMs + minutes);
    await grow(1);
    t.is((await pathOf(tree, leaves[1]!, root)).root, root, "what is known is kept");
    setTime(replacedMs + minutes + 1);
    await grow(1);
    t.is(await tree.rootAfter(1n), undefined);
    t.deepEqual(await tree.path(toHex(leaves[1]!), root), { missing: "root" });
    t.is((await tree.rootAfter(2n))!.leafCount, 3, "current until a moment ago");
    const kept = await database.read.rows<{ block_number: number }>((sql) =>
      sql("merkle_roots").orderBy("block_number").select("block_number"),
    );
    t.deepEqual(
      kept.map(({ block_number }) => block_number),
      [2, 304, 305],
    );
  });
}

test("a large block is folded in pieces, in other threads, and gives the same tree", async (t) => {
  const { createZkThreads: createWorkerPool } = await import("../../src/zk/worker-pool.js");
  const { appendToTree, frontierOf, peaksAfter } = await import("../../src/zk/fold.js");
  const workerPool = createWorkerPool(2);
  t.teardown(() => workerPool.stop());
  const leaves = Array.from({ length: 5_000 }, (_, i) => BigInt(i + 1));
  const other = new IMT(poseidon2, 20, 0n, 2, leaves);
  let peaks = {};
  let count = 0;
  // Begins and ends inside of pieces.
  for (const size of [3, 4_500, 497]) {
    const runs = await appendToTree(count, leaves.slice(count, count + size), peaks, workerPool.foldAll);
    count += size;
    peaks = peaksAfter(count, peaks, runs);
  }
  t.is(frontierOf(count, peaks)[20], other.root as bigint);
});

test("a full tree has a root, and no edge", async (t) => {
  const { frontierOf } = await import("../../src/zk/fold.js");
  t.deepEqual(frontierOf(2 ** 20, { 20: 5n }), new Array(21).fill(undefined));
});
