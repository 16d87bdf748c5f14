/** `gatehouse zk`: adds commitments, spends nullifiers, fetches and verifies proofs. */
import { hex32 } from "../base/hash.js";
import { privateFileMode } from "../base/private-files.js";
import type { Command } from "commander";
import { readFile, writeFile } from "node:fs/promises";
import { z } from "zod";
import { rootOfPath } from "../zk/fold.js";
import { parseProof } from "../zk/groth16.js";
import { fieldOrder, toHex, treeDepth } from "../zk/poseidon.js";
import { addNodeFlags, askSuccessfully } from "./ask-node.js";
import { ExitError, paint, print, table } from "./output.js";
import { addChangeFlags, type ChangeFlags, submitAndReport } from "./submit.js";

/** Adds the commands. */
export function addZk(program: Command): void {
  const zk = program
    .command("zk")
    .description("Add commitments, spend nullifiers, fetch and verify proofs.")
    .addHelpText(
      "after",
      `
A commitment is an element of BN254's scalar field: 0x and 64 lower-case hex digits.

Examples:
  gatehouse zk commit 0x0000…002a --key alice.key
  gatehouse zk proof 0x0000…002a --out proof.json
  gatehouse zk verify proof.json
  gatehouse zk nullify 0x0000…0007 --key alice.key --proof groth16.json --root 0x2134…`,
    );

  addChangeFlags(
    zk.command("commit <COMMITMENT>").description("Add a commitment as the next leaf of the tree."),
  ).action(async (commitment: string, flags: ChangeFlags) => {
    const operation = { case: "addCommitment" as const, value: { commitment } };
    await submitAndReport(flags, { case: "zk", value: { operation } }, commitment, { commitment });
  });

  addChangeFlags(zk.command("nullify <HASH>").description("Spend a nullifier, once and for ever."))
    .option("--proof <FILE>", "Groth16 proof as circom's tools write it; needed where the genesis has a key.")
    .option("--root <ROOT>", "The root that the proof was made for.", "")
    .action(async (nullifierHash: string, flags: ChangeFlags & { proof?: string; root: string }) => {
      const proof = flags.proof === undefined ? undefined : await readGroth16(flags.proof);
      const operation = { case: "spendNullifier" as const, value: { nullifierHash, root: flags.root, proof } };
      await submitAndReport(flags, { case: "zk", value: { operation } }, nullifierHash, { nullifierHash });
    });

  addProof(zk);
  addVerify(zk);
}

function addProof(zk: Command): void {
  addNodeFlags(zk.command("proof <COMMITMENT>").description("Fetch the proof that a commitment is in the tree."))
    .option(
      "--root <ROOT>",
      "Prove it under this root, one of the last 256 blocks or ten minutes, not under the current one.",
    )
    .option("--out <FILE>", "Save the proof, for gatehouse zk verify and for provers.")
    .action(async (commitment: string, flags: { node: string; json?: boolean; root?: string; out?: string }) => {
      const query = flags.root === undefined ? "" : `?root=${encodeURIComponent(flags.root)}`;
      const text = await askSuccessfully(flags.node, `/zk/merkle/proof/${encodeURIComponent(commitment)}${query}`);
      if (flags.out !== undefined) {
        await writeFile(flags.out, `${text}\n`, { mode: privateFileMode }).catch((error: unknown) => {
          throw new ExitError(`${flags.out} cannot be written: ${(error as Error).message}`, 2);
        });
      }
      if (flags.json === true) {
        print(text);
        return;
      }
      const { proof, blockNumber } = JSON.parse(text) as {
        readonly proof: { readonly root: string; readonly leafIndex: number };
        readonly blockNumber: number;
      };
      print(
        ...table([
          ["LEAF", "BLOCK", "ROOT"],
          [String(proof.leafIndex), String(blockNumber), proof.root],
        ]),
        paint(
          "dim",
          flags.out === undefined ? "save it with --out FILE, or see it with --json" : `saved to ${flags.out}`,
        ),
      );
    });
}

function addVerify(zk: Command): void {
  zk.command("verify <FILE>")
    .description("Verify a saved proof, without any node.")
    .option("--root <ROOT>", "The root that it must lead to; without it, compare the printed one with one you trust.")
    .option("--json", "Print the outcome as JSON.")
    .action(async (file: string, flags: { root?: string; json?: boolean }) => {
      const { commitment, leafIndex, root } = verifyProof(await readSavedProof(file));
      if (flags.root !== undefined && flags.root.toLowerCase() !== root) {
        throw new ExitError(`The proof leads to another root: ${root}`, 1);
      }
      if (flags.json === true) {
        print(JSON.stringify({ valid: true, commitment, leafIndex, root }));
      } else {
        print(`${paint("green", "valid")}: ${commitment} is leaf ${leafIndex} under the root ${root}`);
      }
    });
}

const hash = z.string().regex(hex32, "is not 0x and 64 lower-case hex digits");
const element = hash.transform(BigInt).refine((value) => value < fieldOrder, "is no element of the field");
const savedProof = z.looseObject({
  commitment: hash,
  proof: z.looseObject({
    siblings: z.array(z.tuple([element])).length(treeDepth),
    pathIndices: z.array(z.union([z.literal(0), z.literal(1)])).length(treeDepth),
    root: hash,
    leaf: element,
    leafIndex: z.number().int().min(0),
  }),
});

/**
 * Works a proof out.
 *
 * @throws ExitError with code 1 when it does not hold.
 */
function verifyProof({ commitment, proof }: z.infer<typeof savedProof>) {
  const { siblings, pathIndices, leaf, leafIndex } = proof;
  if (toHex(leaf) !== commitment) {
    throw new ExitError("The proof is about another leaf than its commitment.", 1);
  }
  if (pathIndices.some((side, level) => side !== Math.floor(leafIndex / 2 ** level) % 2)) {
    throw new ExitError("The proof's path is not that of its leaf index.", 1);
  }
  const root = toHex(
    rootOfPath(
      leaf,
      siblings.map(([sibling]) => sibling),
      pathIndices,
    ),
  );
  if (root !== proof.root) {
    throw new ExitError("The proof does not hold: its path leads to another root than it says.", 1);
  }
  return { commitment, leafIndex, root };
}

async function readSavedProof(file: string): Promise<z.infer<typeof savedProof>> {
  const parsed = savedProof.safeParse(await readJson(file));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new ExitError(`${file} is not a saved proof: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}`, 2);
  }
  return parsed.data;
}

async function readGroth16(file: string) {
  try {
    return parseProof(await readJson(file));
  } catch (error) {
    throw error instanceof ExitError ? error : new ExitError(`${file}: ${(error as Error).message}`, 2);
  }
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as unknown;
  } catch (error) {
    throw new ExitError(`${file} cannot be read: ${(error as Error).message}`, 2);
  }
}
