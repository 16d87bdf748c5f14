import test from "ava";
import fc from "fast-check";
import { poseidon2 } from "poseidon-lite/poseidon2";
import { emptyNodes, fieldOrder, hashPair, toHex, treeDepth } from "../../src/zk/poseidon.js";

test("hashPair equals Poseidon of circomlib", (t) => {
  t.is(hashPair(1n, 2n), 7853200120776062878684798364095072458815029376092732009249414926327459813530n);
});

test("hashPair equals a reference implementation for any elements", (t) => {
  const element = fc.oneof(
    fc.bigInt({ min: 0n, max: fieldOrder - 1n }),
    fc.constantFrom(0n, 1n, fieldOrder - 1n, fieldOrder / 2n),
  );
  const isEqual = fc.property(element, element, (left, right) => hashPair(left, right) === poseidon2([left, right]));
  t.notThrows(() => fc.assert(isEqual, { numRuns: 300 }));
});

test("each node of the empty tree is the hash of the level below, and its root is known", (t) => {
  t.is(emptyNodes().length, treeDepth + 1);
  for (let level = 0; level < treeDepth; level++) {
    t.is(emptyNodes()[level + 1], poseidon2([emptyNodes()[level]!, emptyNodes()[level]!]));
  }
  t.is(toHex(emptyNodes()[treeDepth]!), "0x2134e76ac5d21aab186c2be1dd8f84ee880a1e46eaf712f9d371b6df22191f3e");
});
