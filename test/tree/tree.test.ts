/** Trees in pages: compares changes with a tree that is built by its definition, and verifies proofs. */
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

/** Creates a page store in memory. */
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

/** Computes the root by its definition. */
function rootByDefinition(leaves: readonly Leaf[], depth = 0): Uint8Array {
  const [first] = leaves;
  if (leaves.length < 2) {
    return first === undefined ? emptyHash : treeHashes.leaf(first.key, first.valueHash);
  }
  const side = (bit: 0 | 1) =>
    rootByDefinition(
      leaves.filter(({ key }) => bitOf(key, depth) === bit),
      depth + 1,
    );
  return treeHashes.inner(side(0), side(1));
}

/** Returns a random key. Half of these keys share many bits. */
function randomKey(): Buffer {
  const key = randomBytes(32);
  if (Math.random() < 0.5) {
    key.fill(0xa5, 0, Math.floor(Math.random() * 32));
    key[31]! &= 3;
  }
  return key;
}

const sortedLeaves = (tree: ReadonlyMap<string, Leaf>): Leaf[] =>
  [...tree.values()].toSorted((a, b) => Buffer.compare(a.key, b.key));

test("changes of several blocks lead to the same root as a tree that is built at once", async (t) => {
  for (let round = 0; round < 15; round++) {
    const stored = createPages();
    const expected = new Map<string, Leaf>();
    for (let block = 0; block < 12; block++) {
      const added = Array.from({ length: Math.floor(Math.random() * 60) }, randomKey);
      const existing = sortedLeaves(expected).filter(() => Math.random() < 0.3);
      const changes = new Map<string, LeafChange>(
        [...added, ...existing.map(({ key }) => key)].map((key) => [
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
      const leaves = sortedLeaves(expected);
      t.is(root, hex(rootByDefinition(leaves)));
      t.is(root, hex(runWithoutYielding(buildTree(leaves)).root));
      t.is(root, hex(rootOfLeaves(leaves.toReversed())));
    }
    // Removing all leaves removes all pages.
    await stored.change(sortedLeaves(expected).map(({ key }) => ({ key, valueHash: undefined })));
    t.is(stored.pages.size, 0);
  }
});

test("a page is decoded as it was encoded, and is rejected if it is truncated, too long or of an unknown kind", (t) => {
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

test("a proof shows the presence or absence of a key, and is valid only for its own root and value", async (t) => {
  const stored = createPages();
  const tree = new Map<string, Leaf>();
  for (const key of Array.from({ length: 400 }, randomKey)) {
    tree.set(hex(key), { key, valueHash: randomBytes(32) });
  }
  const leaves = sortedLeaves(tree);
  const root = Buffer.from(await stored.change(leaves), "hex");
  for (const key of [...leaves.slice(0, 40).map((leaf) => leaf.key), ...Array.from({ length: 40 }, randomKey)]) {
    const proof = await provePath(stored.load, key);
    t.deepEqual(proof.valueHash, tree.get(hex(key))?.valueHash);
    t.true(leadsTo(root, treeHashes, key, proof.valueHash, proof));
    t.deepEqual(proveAmong(leaves, key), proof);
    t.false(leadsTo(randomBytes(32), treeHashes, key, proof.valueHash, proof));
    // A proof of presence does not show absence, and a proof of absence does not show a value.
    t.false(leadsTo(root, treeHashes, key, proof.valueHash === undefined ? randomBytes(32) : undefined, proof));
  }
});

test("a proof with a flipped bit or a missing part is invalid", async (t) => {
  const stored = createPages();
  const leaves = Array.from({ length: 50 }, () => ({ key: randomBytes(32), valueHash: randomBytes(32) }));
  const root = Buffer.from(await stored.change(leaves), "hex");
  const absent = randomBytes(32);
  for (const key of [leaves[0]!.key, absent]) {
    const proof = await provePath(stored.load, key);
    const parts = [proof.siblings, proof.valueHash, proof.other?.key, proof.other?.valueHash];
    let flipped = 0;
    for (const part of parts.filter((bytes) => bytes !== undefined)) {
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
    // The proof does not hold for a key at another position. It would hold for an absent key at the same position.
    const distantKey = Buffer.from(key);
    distantKey[0]! ^= 0x80;
    t.false(leadsTo(root, treeHashes, distantKey, proof.valueHash, proof));
  }
  // No leaf shows the absence of a key that is present.
  const [first, second] = [leaves[0]!, leaves[1]!];
  for (const other of [first, second]) {
    const { siblings } = await provePath(stored.load, other.key);
    t.false(leadsTo(root, treeHashes, first.key, undefined, { siblings, other }));
  }
});

/** Creates a random entry whose value hash is the SHA-256 of its value, as ICS-23 requires. */
function randomEntry() {
  const [key, value] = [randomBytes(32), randomBytes(20)];
  return { key, value, valueHash: hash("sha256", value, "buffer") };
}

/** Converts a proof to ICS-23: a list from the leaf up, of the bytes that are hashed before and after each node. */
function toIcs23({ siblings }: Path, { key, value }: ReturnType<typeof randomEntry>) {
  const { leafSpec: leaf, innerSpec } = smtSpec;
  const path = Array.from({ length: siblings.length / 32 }, (_, depth) => {
    const sibling = siblings.subarray(32 * depth, 32 * (depth + 1));
    return bitOf(key, depth) === 0
      ? { hash: innerSpec!.hash, prefix: Uint8Array.of(1), suffix: sibling }
      : { hash: innerSpec!.hash, prefix: Uint8Array.of(1, ...sibling), suffix: new Uint8Array() };
  });
  return { key, value, leaf: leaf!, path: path.reverse() };
}

test("the ICS-23 library verifies proofs of presence and absence under its sparse Merkle spec", async (t) => {
  const stored = createPages();
  const entries = Array.from({ length: 300 }, randomEntry).toSorted((a, b) => Buffer.compare(a.key, b.key));
  const root = Buffer.from(await stored.change(entries), "hex");
  const proofs = await Promise.all(
    entries.map(async (entry) => toIcs23(await provePath(stored.load, entry.key), entry)),
  );
  for (const [i, { key, value }] of entries.entries()) {
    t.notThrows(() => verifyExistence(proofs[i]!, smtSpec, root, key, value));
    t.throws(() => verifyExistence(proofs[i]!, smtSpec, root, key, randomBytes(20)));
    t.throws(() => verifyExistence(proofs[i]!, smtSpec, randomBytes(32), key, value));
  }
  // ICS-23 proves absence with the presence of both neighbors. It does not accept neighbors with an empty subtree
  // between them, so this skips neighbors whose paths have an empty sibling.
  const hasEmpty = ({ path }: (typeof proofs)[number]): boolean =>
    path.some(({ prefix, suffix }) =>
      [prefix.subarray(1), suffix].some((sibling) => Buffer.compare(sibling, emptyHash) === 0),
    );
  let verified = 0;
  for (let i = 0; i < 2_000; i++) {
    const key = randomBytes(32);
    const next = entries.findIndex((entry) => Buffer.compare(entry.key, key) > 0);
    const [left, right] = [proofs[next - 1], proofs[next]];
    if (left === undefined || right === undefined || hasEmpty(left) || hasEmpty(right)) {
      continue;
    }
    verified++;
    t.notThrows(() => verifyNonExistence({ key, left, right }, smtSpec, root, key));
    const proof = await provePath(stored.load, key);
    t.true(leadsTo(root, treeHashes, key, undefined, proof));
    if (proof.other !== undefined) {
      // The leaf at the position of the absent key is one of its neighbors.
      t.true([left.key, right.key].some((neighbor) => Buffer.compare(neighbor, proof.other!.key) === 0));
    }
  }
  t.true(verified > 300, `${verified} absences`);
});
