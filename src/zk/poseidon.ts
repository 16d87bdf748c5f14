/**
 * Hash of the commitment tree: Poseidon of two inputs over BN254, with circomlib's parameters. The matrices of the partial
 * rounds are factored into sparse ones, and their constants moved to one element (appendix B of the Poseidon paper). The
 * result equals the definition's, in a fraction of the operations.
 */
import { bn254 } from "@noble/curves/bn254.js";
import { grainGenConstants } from "@noble/curves/abstract/poseidon.js";
import { compileFieldProgram, type FieldProgram, type Operation } from "./field-program.js";

/** Depth of the tree, which has at most 2^20 leaves. */
export const treeDepth = 20;

/** Order of the field that hashes and leaves belong to. */
export const fieldOrder = bn254.fields.Fr.ORDER;

const fullRounds = 8;
const partialRounds = 57;

type Triple = [bigint, bigint, bigint];

/** Sparse matrix: the first row, the rest of the first column, and ones on the diagonal. */
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
/** Compiled at the first hash, since most commands compute none. */
let program: FieldProgram | undefined;

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

/** Compiles the rounds to field operations. Registers 0 to 2 hold the state; constants start at 8. */
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

  // From the last partial round to the first: each matrix is the product of a sparse one and one that keeps the first
  // element. The latter commutes with the round's S-box, and merges into the matrix of the preceding round.
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

  // Constants of a partial round for the other elements are added after its matrix instead.
  let pendingConstants = roundConstants[half]!;
  const constants = sparse.map((_, round) => {
    const [own, b, c] = pendingConstants;
    pendingConstants = roundConstants[half + round + 1]!.map((constant, i) =>
      Fr.add(constant, Fr.add(Fr.mul(mds[i]![1], b), Fr.mul(mds[i]![2], c))),
    ) as Triple;
    return own;
  });

  const full = (round: number): FullRound => ({ constants: roundConstants[round]!, matrix: mds });
  const firstAfter = half + partialRounds;
  return {
    before: [full(0), full(1), full(2), { constants: roundConstants[3]!, matrix: [first, second, third] as const }],
    partial: sparse.map((round, i): SparseRound => ({ ...round, constant: constants[i]! })),
    after: [
      { constants: pendingConstants, matrix: mds },
      full(firstAfter + 1),
      full(firstAfter + 2),
      full(firstAfter + 3),
    ],
  };
}

let empty: readonly bigint[] | undefined;

/** Returns the hashes of empty subtrees, by level from the leaves (0) to the root (20). */
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

/** Formats a field element as 0x and 64 lower-case hex digits. */
export function toHex(element: bigint): string {
  return `0x${element.toString(16).padStart(64, "0")}`;
}
