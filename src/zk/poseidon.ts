/**
 * The tree's hash: Poseidon with circomlib's parameters over BN254, two inputs. It gives what the definition gives, in
 * about two thirds of the time: the matrices of the partial rounds are factored into sparse ones and their constants
 * moved to the one element that the round is about (the Poseidon paper, appendix B), which leaves eight multiplications
 * of twelve to each of these rounds, and a reduction of the two other elements at the end only.
 */
import { bn254 } from "@noble/curves/bn254.js";
import { grainGenConstants } from "@noble/curves/abstract/poseidon.js";

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

const { before, partial, after } = compile();

/** Hash of a node from its children. */
export function hashPair(left: bigint, right: bigint): bigint {
  let state: Triple = [0n, left, right];
  for (const round of before) {
    state = applyFull(state, round);
  }
  let [a, b, c] = state;
  for (const { constant, row, column } of partial) {
    const x = fifthPower(a + constant);
    a = (row[0] * x + row[1] * b + row[2] * c) % fieldOrder;
    b += column[0] * x;
    c += column[1] * x;
  }
  state = [a, b % fieldOrder, c % fieldOrder];
  for (const round of after) {
    state = applyFull(state, round);
  }
  return state[0];
}

function applyFull([a, b, c]: Triple, { constants: [k, l, m], matrix: [first, second, third] }: FullRound): Triple {
  const x = fifthPower(a + k);
  const y = fifthPower(b + l);
  const z = fifthPower(c + m);
  return [
    (first[0] * x + first[1] * y + first[2] * z) % fieldOrder,
    (second[0] * x + second[1] * y + second[2] * z) % fieldOrder,
    (third[0] * x + third[1] * y + third[2] * z) % fieldOrder,
  ];
}

function fifthPower(x: bigint): bigint {
  const square = (x * x) % fieldOrder;
  return (square * square * x) % fieldOrder;
}

/** Factors the rounds. */
function compile() {
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

/** By level from the leaves (0) to the root (20): the node above nothing but empty leaves. */
export const emptyNodes: readonly bigint[] = Array.from({ length: treeDepth }).reduce<bigint[]>(
  (levels) => [...levels, hashPair(levels.at(-1)!, levels.at(-1)!)],
  [0n],
);

/** A field element as 0x and 64 lower-case hex digits. */
export function toHex(element: bigint): string {
  return `0x${element.toString(16).padStart(64, "0")}`;
}
