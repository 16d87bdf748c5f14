/**
 * The tree's hash: Poseidon with circomlib's parameters over BN254, two inputs. It gives what the definition gives, in a
 * fraction of the operations: the matrices of the partial rounds are factored into sparse ones and their constants moved
 * to the one element that the round is about (the Poseidon paper, appendix B).
 */
import { bn254 } from "@noble/curves/bn254.js";
import { grainGenConstants } from "@noble/curves/abstract/poseidon.js";
import { compileFieldProgram, type FieldProgram, type Operation } from "./field-program.js";

/** Depth of the tree: 2^20 leaves at most. */
export const treeDepth = 20;

/** The order of the field that hashes and leaves are elements of. */
export const fieldOrder = bn254.fields.Fr.ORDER;

const fullRounds = 8;
const partialRounds = 57;

type Triple = [bigint, bigint, bigint];

/** A sparse matrix: its first row, and below the first element of that its first column; ones on the diagonal. */
interface SparseRound {
  readonly constant: bigint;
  readonly row: Triple;
  readonly column: readonly [bigint, bigint];
}

interface FullRound {
  readonly constants: Triple;
  readonly matrix: readonly [Triple, Triple, Triple];
}

const [left, right] = [1, 2];
/** Compiled when the first hash is wanted: most commands never want one. */
let program: FieldProgram | undefined;

/** Hash of a node from its children. */
export function hashPair(leftChild: bigint, rightChild: bigint): bigint {
  program ??= compileProgram();
  return program.run(
    new Map([
      [0, 0n],
      [left, leftChild],
      [right, rightChild],
    ]),
    0,
  );
}

/** The rounds as field operations. Registers 0 to 2 hold the state, those from 8 on the constants. */
function compileProgram(): FieldProgram {
  const { before, partial, after } = factorRounds();
  const state = [0, left, right] as const;
  const [sum, power, x, y, z] = [3, 4, 5, 6, 7];
  const operations: Operation[] = [];
  const constants = new Map<number, bigint>();
  const constant = (value: bigint): number => {
    const register = 8 + constants.size;
    constants.set(register, value);
    return register;
  };
  /** out = (element + added)^5 */
  const raise = (out: number, element: number, added: bigint): void => {
    operations.push(
      { kind: "add", registers: [sum, element, constant(added)] },
      { kind: "multiply", registers: [power, sum, sum] },
      { kind: "multiply", registers: [power, power, power] },
      { kind: "multiply", registers: [out, power, sum] },
    );
  };
  const combine = (out: number, row: Triple, a: number, b: number, c: number): void => {
    const [k, l, m] = row.map(constant) as [number, number, number];
    operations.push({ kind: "dot", registers: [out, k, a, l, b, m, c] });
  };
  const applyFull = ({ constants: added, matrix }: FullRound): void => {
    [x, y, z].forEach((out, i) => raise(out, state[i]!, added[i]!));
    matrix.forEach((row, i) => combine(state[i]!, row, x, y, z));
  };

  before.forEach(applyFull);
  for (const round of partial) {
    raise(x, state[0], round.constant);
    combine(state[0], round.row, x, state[1], state[2]);
    operations.push(
      { kind: "multiplyAdd", registers: [state[1], constant(round.column[0]), x, state[1]] },
      { kind: "multiplyAdd", registers: [state[2], constant(round.column[1]), x, state[2]] },
    );
  }
  after.forEach(applyFull);
  return compileFieldProgram(fieldOrder, operations, constants);
}

function factorRounds() {
  const { Fr } = bn254.fields;
  const { roundConstants, mds } = grainGenConstants({
    Fp: Fr,
    t: 3,
    roundsFull: fullRounds,
    roundsPartial: partialRounds,
    sboxPower: 5,
  }) as { roundConstants: Triple[]; mds: [Triple, Triple, Triple] };
  const half = fullRounds / 2;

  // From the last partial round to the first: a matrix is a sparse one after one that leaves the first element alone,
  // and the latter may as well be applied before the round's S-box, as part of the matrix of the round before.
  let [first, second, third] = mds;
  const sparse: Omit<SparseRound, "constant">[] = [];
  for (let round = 0; round < partialRounds; round++) {
    const [p, q, r, s] = [second[1], second[2], third[1], third[2]];
    const inverse = Fr.inv(Fr.sub(Fr.mul(p, s), Fr.mul(q, r)));
    const solve = (x: bigint, y: bigint): bigint => Fr.mul(Fr.create(x), Fr.mul(Fr.create(y), inverse));
    sparse.unshift({
      row: [first[0], Fr.sub(solve(first[1], s), solve(first[2], r)), Fr.sub(solve(first[2], p), solve(first[1], q))],
      column: [second[0], third[0]],
    });
    const combine = (x: bigint, y: bigint): Triple =>
      mds[1].map((element, i) => Fr.add(Fr.mul(x, element), Fr.mul(y, mds[2][i]!))) as Triple;
    [first, second, third] = [mds[0], combine(p, q), combine(r, s)];
  }

  // A constant that a partial round adds to the other elements may as well be added after its matrix.
  let carried = roundConstants[half]!;
  const constants = sparse.map((_, round) => {
    const [own, b, c] = carried;
    carried = roundConstants[half + round + 1]!.map((constant, i) =>
      Fr.add(constant, Fr.add(Fr.mul(mds[i]![1], b), Fr.mul(mds[i]![2], c))),
    ) as Triple;
    return own;
  });

  const full = (round: number): FullRound => ({ constants: roundConstants[round]!, matrix: mds });
  const later = half + partialRounds;
  return {
    before: [full(0), full(1), full(2), { constants: roundConstants[3]!, matrix: [first, second, third] as const }],
    partial: sparse.map((round, i): SparseRound => ({ ...round, constant: constants[i]! })),
    after: [{ constants: carried, matrix: mds }, full(later + 1), full(later + 2), full(later + 3)],
  };
}

let empty: readonly bigint[] | undefined;

/** By level from the leaves (0) to the root (20): the node above nothing but empty leaves. */
export function emptyNodes(): readonly bigint[] {
  if (empty === undefined) {
    const nodes = [0n];
    while (nodes.length <= treeDepth) {
      nodes.push(hashPair(nodes.at(-1)!, nodes.at(-1)!));
    }
    empty = nodes;
  }
  return empty;
}

/** A field element as 0x and 64 lower-case hex digits. */
export function toHex(element: bigint): string {
  return `0x${element.toString(16).padStart(64, "0")}`;
}
