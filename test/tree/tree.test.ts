/** Trees in pages: changes against a tree that is built by its definition, and proofs against every other root. */
import { verifyExistence, verifyNonExistence } from "@confio/ics23";
import { runWithoutYielding } from "../../src/base/async/yielding.js";
import { smtSpec } from "@confio/ics23/build/proofs.js";
import test from "ava";
import { hash, randomBytes } from "node:crypto";
import { buildTree, changeTree, type LeafChange, type LoadPages, rootOfLeaves } from "../../src/tree/change.js";
import { bitOf, emptyHash } from "../../src/tree/hashes.js";
import { treeHashes } from "../../src/tree/node-hashes.js";
import { decodeTreePage, encodeTreePage, maxBucketLeaves, type PagePath } from "../../src/tree/page.js";
import { type Leaf, leadsTo, type Path } from "../../src/tree/path.js";
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
      t.is(root, hex(runWithoutYielding(buildTree(leaves)).root));
      t.is(root, hex(rootOfLeaves(leaves.toReversed())));
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
  const { pages } = runWithoutYielding(buildTree(leaves));
  const stored = [...pages.values()].map((bytes) => Buffer.from(bytes!));
  t.deepEqual(new Set(stored.map((bytes) => decodeTreePage(bytes).kind)), new Set(["bucket", "branch"]));
  for (const bytes of stored) {
    t.deepEqual(encodeTreePage(decodeTreePage(bytes)), bytes);
    for (const wrong of [bytes.subarray(0, -1), Buffer.concat([bytes, Buffer.of(0)]), Buffer.from([7])]) {
      t.throws(() => decodeTreePage(wrong), { instanceOf: RangeError });
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
    // A key elsewhere: one that is absent at the same place of the tree is shown by the same proof.
    const elsewhere = Buffer.from(key);
    elsewhere[0]! ^= 0x80;
    t.false(leadsTo(root, treeHashes, elsewhere, proof.valueHash, proof));
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

/** An entry whose value hash is that of a value, as ICS-23 has it. */
function someEntry() {
  const [key, value] = [randomBytes(32), randomBytes(20)];
  return { key, value, valueHash: hash("sha256", value, "buffer") };
}

/** A proof in the words of ICS-23: from the leaf upwards, what stands before and after the node in what is hashed. */
function toIcs23({ siblings }: Path, { key, value }: ReturnType<typeof someEntry>) {
  const { leafSpec: leaf, innerSpec } = smtSpec;
  const path = Array.from({ length: siblings.length / 32 }, (_, depth) => {
    const sibling = siblings.subarray(32 * depth, 32 * (depth + 1));
    return bitOf(key, depth) === 0
      ? { hash: innerSpec!.hash, prefix: Uint8Array.of(1), suffix: sibling }
      : { hash: innerSpec!.hash, prefix: Uint8Array.of(1, ...sibling), suffix: new Uint8Array() };
  });
  return { key, value, leaf: leaf!, path: path.reverse() };
}

test("a verifier of others takes our proofs under its sparse Merkle spec, of what is there and of what is not", async (t) => {
  const stored = createPages();
  const entries = Array.from({ length: 300 }, someEntry).toSorted((a, b) => Buffer.compare(a.key, b.key));
  const root = Buffer.from(await stored.change(entries), "hex");
  const proofs = await Promise.all(
    entries.map(async (entry) => toIcs23(await provePath(stored.load, entry.key), entry)),
  );
  for (const [i, { key, value }] of entries.entries()) {
    t.notThrows(() => verifyExistence(proofs[i]!, smtSpec, root, key, value));
    t.throws(() => verifyExistence(proofs[i]!, smtSpec, root, key, randomBytes(20)));
    t.throws(() => verifyExistence(proofs[i]!, smtSpec, randomBytes(32), key, value));
  }
  // Its proof of absence is two of presence, of the keys on both sides. It does not see that an empty half lies between
  // two neighbors, so only those are asked that have none on their way.
  const hasEmpty = ({ path }: (typeof proofs)[number]): boolean =>
    path.some(({ prefix, suffix }) => [prefix.subarray(1), suffix].some((one) => Buffer.compare(one, emptyHash) === 0));
  let asked = 0;
  for (let i = 0; i < 2_000; i++) {
    const key = randomBytes(32);
    const next = entries.findIndex((entry) => Buffer.compare(entry.key, key) > 0);
    const [left, right] = [proofs[next - 1], proofs[next]];
    if (left === undefined || right === undefined || hasEmpty(left) || hasEmpty(right)) {
      continue;
    }
    asked++;
    t.notThrows(() => verifyNonExistence({ key, left, right }, smtSpec, root, key));
    const proof = await provePath(stored.load, key);
    t.true(leadsTo(root, treeHashes, key, undefined, proof));
    if (proof.other !== undefined) {
      // The leaf that stands in its place is one of the two.
      t.true([left.key, right.key].some((one) => Buffer.compare(one, proof.other!.key) === 0));
    }
  }
  t.true(asked > 300, `${asked} absences`);
});
