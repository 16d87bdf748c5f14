import test, { type ExecutionContext } from "ava";
import fc from "fast-check";
import { poseidon2 } from "poseidon-lite/poseidon2";
import { compileFieldProgram, type Operation } from "../../src/zk/field-program.js";
import { emptyNodes, fieldOrder, hashPair, toHex, treeDepth } from "../../src/zk/poseidon.js";

const element = fc.oneof(
  fc.bigInt({ min: 0n, max: fieldOrder - 1n }),
  fc.constantFrom(0n, 1n, fieldOrder - 1n, fieldOrder - 2n, fieldOrder / 2n, 2n ** 253n, 2n ** 29n - 1n, 2n ** 232n),
);
test("hashPair equals Poseidon of circomlib", (t) => {
  t.is(hashPair(1n, 2n), 7853200120776062878684798364095072458815029376092732009249414926327459813530n);
});

test("hashPair equals a reference implementation for any elements", (t) => {
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

const sixElements = fc.tuple(element, element, element, element, element, element);

function check(t: ExecutionContext, operation: Operation[], expected: (inputs: readonly bigint[]) => bigint): void {
  const program = compileFieldProgram(fieldOrder, operation, new Map([[7, fieldOrder - 1n]]));
  const isCorrect = fc.property(sixElements, (inputs) => {
    const registers = new Map(inputs.map((value, i) => [i, value]));
    return program.run(registers, 6) === ((expected(inputs) % fieldOrder) + fieldOrder) % fieldOrder;
  });
  t.notThrows(() => fc.assert(isCorrect, { numRuns: 500 }));
}

test("computes products, sums of products and sums in the field", (t) => {
  check(t, [{ kind: "multiply", registers: [6, 0, 1] }], ([a, b]) => a! * b!);
  check(t, [{ kind: "dot", registers: [6, 0, 1, 2, 3, 4, 5] }], ([a, b, c, d, e, f]) => a! * b! + c! * d! + e! * f!);
  check(t, [{ kind: "multiplyAdd", registers: [6, 0, 1, 2] }], ([a, b, c]) => a! * b! + c!);
  const square: Operation[] = [
    { kind: "add", registers: [3, 0, 7] },
    { kind: "multiply", registers: [6, 3, 3] },
  ];
  check(t, square, ([a]) => (a! - 1n) ** 2n);
  const thousand = Array.from({ length: 1_000 }, (): Operation => ({ kind: "multiplyAdd", registers: [6, 0, 1, 6] }));
  check(t, [{ kind: "multiply", registers: [6, 2, 3] }, ...thousand], ([a, b, c, d]) => c! * d! + 1_000n * a! * b!);
});

test("operations use the results of earlier ones in a chain of 600", (t) => {
  const chain = Array.from({ length: 200 }, (): Operation[] => [
    { kind: "dot", registers: [6, 6, 6, 6, 7, 7, 0] },
    { kind: "multiplyAdd", registers: [6, 6, 1, 6] },
    { kind: "multiply", registers: [6, 6, 7] },
  ]).flat();
  check(t, [{ kind: "multiply", registers: [6, 2, 3] }, ...chain], ([a, b, c, d]) => {
    let x = (c! * d!) % fieldOrder;
    for (let i = 0; i < 200; i++) {
      x = (x * x - x - a!) % fieldOrder;
      x = (x * b! + x) % fieldOrder;
      x = -x;
    }
    return x;
  });
});
