/** Trees in pages: changes against a tree that is built by its definition, and proofs against every other root. */
import test from "ava";
import { randomBytes } from "node:crypto";
import { buildTree, changeTree, type LeafChange, type LoadPages } from "../../src/tree/change.js";
import { bitOf, emptyHash } from "../../src/tree/hashes.js";
import { treeHashes } from "../../src/tree/node-hashes.js";
import { decodePage, encodePage, maxBucketLeaves, type PagePath } from "../../src/tree/page.js";
import { type Leaf, leadsTo } from "../../src/tree/path.js";
import { proveAmong, provePath } from "../../src/tree/prove.js";

/** Pages in memory, as a store would keep them. */
function createPages() {
  const pages = new Map<PagePath, Uint8Array>();
  const load: LoadPages = (paths) =>
    Promise.resolve(new Map(paths.flatMap((path) => (pages.has(path) ? [[path, pages.get(path)!]] : []))));
  return {
    pages,
    load,
    async change(changes: readonly LeafChange[]): Promise<string> {
      const { root, pages: changed } = await changeTree(load, changes);
      for (const [path, bytes] of changed) {
        if (bytes === undefined) {
          pages.delete(path);
        } else {
          pages.set(path, bytes);
        }
      }
      return hex(root);
    },
  };
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

/** The root by its definition. */
function rootOf(leaves: readonly Leaf[], depth = 0): Uint8Array {
  const [first] = leaves;
  if (leaves.length < 2) {
    return first === undefined ? emptyHash : treeHashes.leaf(first.key, first.valueHash);
  }
  const side = (bit: 0 | 1) =>
    rootOf(
      leaves.filter(({ key }) => bitOf(key, depth) === bit),
      depth + 1,
    );
  return treeHashes.inner(side(0), side(1));
}

/** Keys of which half have many bits in common. */
function someKey(): Buffer {
  const key = randomBytes(32);
  if (Math.random() < 0.5) {
    key.fill(0xa5, 0, Math.floor(Math.random() * 32));
    key[31]! &= 3;
  }
  return key;
}

const inOrder = (tree: ReadonlyMap<string, Leaf>): Leaf[] =>
  [...tree.values()].toSorted((a, b) => Buffer.compare(a.key, b.key));

test("blocks of changes lead to the root of what is there, as does a tree that is built at once", async (t) => {
  for (let round = 0; round < 15; round++) {
    const stored = createPages();
    const expected = new Map<string, Leaf>();
    for (let block = 0; block < 12; block++) {
      const added = Array.from({ length: Math.floor(Math.random() * 60) }, someKey);
      const taken = inOrder(expected).filter(() => Math.random() < 0.3);
      const changes = new Map<string, LeafChange>(
        [...added, ...taken.map(({ key }) => key)].map((key) => [
          hex(key),
          { key, valueHash: Math.random() < 0.5 ? randomBytes(32) : undefined },
        ]),
      );
      for (const [key, { key: bytes, valueHash }] of changes) {
        if (valueHash === undefined) {
          expected.delete(key);
        } else {
          expected.set(key, { key: bytes, valueHash });
        }
      }
      const root = await stored.change([...changes.values()]);
      const leaves = inOrder(expected);
      t.is(root, hex(rootOf(leaves)));
      t.is(root, hex(buildTree(leaves).root));
    }
    // Everything taken out again leaves no page behind.
    await stored.change(inOrder(expected).map(({ key }) => ({ key, valueHash: undefined })));
    t.is(stored.pages.size, 0);
  }
});

test("a page reads as it was written, and is refused when it is cut, too long or of no kind", (t) => {
  const leaves = Array.from({ length: maxBucketLeaves + 40 }, () => ({
    key: randomBytes(32),
    valueHash: randomBytes(32),
  }));
  const { pages } = buildTree(leaves);
  const stored = [...pages.values()].map((bytes) => Buffer.from(bytes!));
  t.deepEqual(new Set(stored.map((bytes) => decodePage(bytes).kind)), new Set(["bucket", "branch"]));
  for (const bytes of stored) {
    t.deepEqual(encodePage(decodePage(bytes)), bytes);
    for (const wrong of [bytes.subarray(0, -1), Buffer.concat([bytes, Buffer.of(0)]), Buffer.from([7])]) {
      t.throws(() => decodePage(wrong), { instanceOf: RangeError });
    }
  }
});

test("a proof shows what is there and what is not, under its own root alone, and with any bit flipped nothing", async (t) => {
  const stored = createPages();
  const tree = new Map<string, Leaf>();
  for (const key of Array.from({ length: 400 }, someKey)) {
    tree.set(hex(key), { key, valueHash: randomBytes(32) });
  }
  const leaves = inOrder(tree);
  const root = Buffer.from(await stored.change(leaves), "hex");
  for (const key of [...leaves.slice(0, 40).map((leaf) => leaf.key), ...Array.from({ length: 40 }, someKey)]) {
    const proof = await provePath(stored.load, key);
    t.deepEqual(proof.valueHash, tree.get(hex(key))?.valueHash);
    t.true(leadsTo(root, treeHashes, key, proof.valueHash, proof));
    t.deepEqual(proveAmong(leaves, key), proof);
    t.false(leadsTo(randomBytes(32), treeHashes, key, proof.valueHash, proof));
    // Neither presence as absence, nor absence as presence, nor another value.
    t.false(leadsTo(root, treeHashes, key, proof.valueHash === undefined ? randomBytes(32) : undefined, proof));
  }
});

test("every bit of a proof counts", async (t) => {
  const stored = createPages();
  const leaves = Array.from({ length: 50 }, () => ({ key: randomBytes(32), valueHash: randomBytes(32) }));
  const root = Buffer.from(await stored.change(leaves), "hex");
  const absent = randomBytes(32);
  for (const key of [leaves[0]!.key, absent]) {
    const proof = await provePath(stored.load, key);
    const parts = [proof.siblings, proof.valueHash, proof.other?.key, proof.other?.valueHash];
    let flipped = 0;
    for (const part of parts.filter((one) => one !== undefined)) {
      for (let bit = 0; bit < part.length * 8; bit++) {
        part[bit >> 3]! ^= 1 << (bit & 7);
        t.false(leadsTo(root, treeHashes, key, proof.valueHash, proof));
        part[bit >> 3]! ^= 1 << (bit & 7);
        flipped++;
      }
    }
    t.true(flipped >= 8 * 32 * 5);
    t.false(leadsTo(root, treeHashes, key, proof.valueHash, { ...proof, siblings: proof.siblings.subarray(32) }));
    t.false(leadsTo(root, treeHashes, key, proof.valueHash, { ...proof, siblings: proof.siblings.subarray(1) }));
    t.false(leadsTo(root, treeHashes, randomBytes(32), proof.valueHash, proof));
  }
});

test("no other leaf shows the absence of a key that is there, nor a leaf of another place", async (t) => {
  const stored = createPages();
  const leaves = Array.from({ length: 50 }, () => ({ key: randomBytes(32), valueHash: randomBytes(32) }));
  const root = Buffer.from(await stored.change(leaves), "hex");
  const [one, other] = [leaves[0]!, leaves[1]!];
  const proof = await provePath(stored.load, one.key);
  t.false(leadsTo(root, treeHashes, one.key, undefined, { ...proof, other: one }));
  const ofOther = await provePath(stored.load, other.key);
  t.false(leadsTo(root, treeHashes, one.key, undefined, { siblings: ofOther.siblings, other }));
});
