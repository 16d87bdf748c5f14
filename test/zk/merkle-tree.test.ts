import test from "ava";
import { poseidon2 } from "poseidon-lite/poseidon2";
import type { Engine } from "../../src/db/connect.js";
import { createMerkleTree, type MerklePath } from "../../src/zk/merkle-tree.js";
import { hashPair, toHex } from "../../src/zk/poseidon.js";
import { insertTree } from "../helpers/seed.js";
import { prepareEngines } from "../helpers/databases.js";
import type { Teardown } from "../helpers/start-node.js";

const engines = await prepareEngines();
test.after.always(() => engines.stop());

/** Verifies a proof as another program would: from the leaf upwards. */
function fold(leaf: bigint, { siblings, pathIndices }: MerklePath): string {
  const root = siblings.reduce((node, sibling, level) => {
    const pair = [node, BigInt(sibling)];
    return poseidon2(pathIndices[level] === 0 ? pair : pair.reverse());
  }, leaf);
  return toHex(root);
}

async function treeOf(t: Teardown, engine: Engine, leaves: readonly bigint[]) {
  const database = await engines.open(t, engine);
  if (leaves.length > 0) {
    await insertTree(database, leaves, 7);
  }
  return createMerkleTree(database);
}

test("the hash is Poseidon as circomlib has it", (t) => {
  t.is(hashPair(1n, 2n), 7853200120776062878684798364095072458815029376092732009249414926327459813530n);
});

for (const engine of engines.names) {
  test(`${engine}: the empty tree has its known root, at block 0`, async (t) => {
    let node = 0n;
    for (let level = 0; level < 20; level++) {
      node = poseidon2([node, node]);
    }
    const tree = await treeOf(t, engine, []);
    t.deepEqual(await tree.root(), { root: toHex(node), blockNumber: 0n, leafCount: 0 });
    t.is(await tree.path(toHex(1n)), undefined);
  });

  for (const count of [1, 2, 3, 7, 8, 33]) {
    test(`${engine}: the proof of each of ${count} leaves leads to the root`, async (t) => {
      const leaves = Array.from({ length: count }, (_, i) => BigInt(i + 1) ** 5n);
      const tree = await treeOf(t, engine, leaves);
      const { root, blockNumber, leafCount } = await tree.root();
      t.is(leafCount, count);
      for (const [leafIndex, leaf] of leaves.entries()) {
        const path = await tree.path(toHex(leaf));
        t.like(path, { leafIndex, root, blockNumber });
        t.is(path!.siblings.length, 20);
        t.is(fold(leaf, path!), root);
        t.not(fold(leaf + 1n, path!), root);
      }
      t.is(await tree.path(toHex(123n)), undefined);
    });
  }
}
