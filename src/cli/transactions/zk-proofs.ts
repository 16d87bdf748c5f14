/** Proof files: Merkle proofs of commitments, which this command verifies, and Groth16 proofs, which nodes verify. */
import { z } from "zod";
import { InputError } from "../../base/errors/start-error.js";
import { hex32 } from "../../base/crypto/hash.js";
import { parseJsonText, toPlainJson } from "../../base/text/parse-json.js";
import { rootOfPath } from "../../zk/fold.js";
import { parseProof } from "../../zk/groth16.js";
import { fieldOrder, toHex, treeDepth } from "../../zk/poseidon.js";
import { ExitError } from "../usage/errors.js";
import { readTextInput } from "../usage/files.js";

/** Limit on the size of a file in bytes, far above that of a proof. */
const maxFileBytes = 1024 * 1024;

const hash = z.string().regex(hex32, "is not 0x and 64 lower-case hex digits");
const element = hash.transform(BigInt).refine((value) => value < fieldOrder, "is not an element of the field");
const merkleProof = z.looseObject({
  commitment: hash,
  proof: z.looseObject({
    siblings: z.array(z.tuple([element])).length(treeDepth),
    pathIndices: z.array(z.union([z.literal(0), z.literal(1)])).length(treeDepth),
    root: hash,
    leaf: element,
    leafIndex: z
      .number()
      .int()
      .min(0)
      .max(2 ** treeDepth - 1),
  }),
});

/**
 * Verifies the Merkle proof of a commitment in a file. Returns its proved facts. Throws ExitError with code 1 if the
 * proof does not hold.
 */
export async function verifyMerkleProof(file: string) {
  const { error, data } = merkleProof.safeParse(await readJson(file));
  if (data === undefined) {
    const [issue] = error.issues;
    throw new InputError(`${file} is not a saved proof: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}`);
  }
  const { commitment, proof } = data;
  const { siblings, pathIndices, leaf, leafIndex } = proof;
  if (toHex(leaf) !== commitment) {
    throw new ExitError("The proof is for another leaf than its commitment.");
  }
  if (pathIndices.some((side, level) => side !== Math.floor(leafIndex / 2 ** level) % 2)) {
    throw new ExitError("The proof's path does not match its leaf index.");
  }
  const root = toHex(
    rootOfPath(
      leaf,
      siblings.map(([sibling]) => sibling),
      pathIndices,
    ),
  );
  if (root !== proof.root) {
    throw new ExitError("The proof is invalid: its path leads to another root than the stated one.");
  }
  return { commitment, leafIndex, root };
}

/** Reads a Groth16 proof in the format of the circom tools. */
export async function readGroth16(file: string) {
  const json = await readJson(file);
  try {
    return parseProof(json);
  } catch (error) {
    throw new InputError(`${file}: ${(error as Error).message}`);
  }
}

async function readJson(file: string): Promise<unknown> {
  const text = await readTextInput(file, maxFileBytes);
  try {
    return toPlainJson(parseJsonText(text));
  } catch (error) {
    throw new InputError(`${file} ${(error as Error).message}.`);
  }
}
