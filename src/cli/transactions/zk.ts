/** `gatehouse zk`: adds commitments, spends nullifiers, fetches and verifies proofs. */
import type { Command } from "commander";
import { requestOk } from "../calls/request-node.js";
import { paint, print, table } from "../terminal/output.js";
import { ExitError, exitCodes } from "../usage/errors.js";
import {
  addChangeFlags,
  addNodeFlags,
  addVerifyFlags,
  type ChangeFlags,
  type NodeFlags,
  type VerifyFlags,
} from "../usage/flags.js";
import { writeOutput } from "../usage/write-output.js";
import type { ProvedFlags } from "./proved-reads.js";
import { addZkReads, loadProving } from "./zk-reads.js";
import { isVerifying } from "./verifying.js";

export function addZk(zk: Command): void {
  zk.addHelpText(
    "after",
    `
A commitment is an element of BN254's scalar field: 0x and 64 lower-case hex digits.

Examples:
  gatehouse zk commit 0x0000…002a --key alice.key
  gatehouse zk proof 0x0000…002a --out proof.json
  gatehouse zk verify proof.json
  gatehouse zk nullifier 0x0000…0007 --verify 0x…  # trusts no node
  gatehouse zk nullify 0x0000…0007 --key alice.key --proof groth16.json --root 0x2134…`,
  );

  addChangeFlags(zk.command("commit <COMMITMENT>").description("Append a commitment to the tree.")).action(
    async (commitment: string, flags: ChangeFlags) => {
      const { submitAndReport } = await import("./submit.js");
      const operation = { case: "addCommitment" as const, value: { commitment } };
      await submitAndReport(flags, { case: "zk", value: { operation } }, commitment, { commitment });
    },
  );

  addChangeFlags(zk.command("nullify <HASH>").description("Spend a nullifier, permanently."))
    .option(
      "--proof <FILE>",
      "Groth16 proof in the format of circom's tools; required if the genesis has a verification key.",
    )
    .option("--root <ROOT>", "Root that the proof was generated for.", "")
    .action(async (nullifierHash: string, flags: ChangeFlags & { proof?: string; root: string }) => {
      const [{ submitAndReport }, { readGroth16 }] = await Promise.all([
        import("./submit.js"),
        import("./zk-proofs.js"),
      ]);
      const proof = flags.proof === undefined ? undefined : await readGroth16(flags.proof);
      const operation = { case: "spendNullifier" as const, value: { nullifierHash, root: flags.root, proof } };
      await submitAndReport(flags, { case: "zk", value: { operation } }, nullifierHash, { nullifierHash });
    });

  addZkReads(zk);
  addProof(zk);
  addVerify(zk);
}

function addProof(zk: Command): void {
  addVerifyFlags(
    addNodeFlags(zk.command("proof <COMMITMENT>").description("Fetch a proof that a commitment is in the tree.")),
  )
    .option("--root <ROOT>", "Root to prove under, from the last 256 blocks or ten minutes. Default: the current root.")
    .option("--out <FILE>", "Save the proof to a file, for gatehouse zk verify and for provers.")
    .action(async (commitment: string, flags: NodeFlags & VerifyFlags & { root?: string; out?: string }) => {
      const text = isVerifying(flags)
        ? await fetchVerifiedProof(flags, commitment)
        : await fetchProof(flags, commitment);
      if (flags.out !== undefined) {
        await writeOutput(flags.out, `${text}\n`);
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
          flags.out === undefined ? "save it with --out FILE, or print it with --json" : `saved to ${flags.out}`,
        ),
      );
    });
}

interface ProofFlags extends NodeFlags {
  readonly root?: string;
}

async function fetchProof({ node, root }: ProofFlags, commitment: string): Promise<string> {
  const query = root === undefined ? "" : `?root=${encodeURIComponent(root)}`;
  return await requestOk(node, `/zk/merkle/proof/${encodeURIComponent(commitment)}${query}`);
}

async function fetchVerifiedProof(flags: ProvedFlags & ProofFlags, commitment: string): Promise<string> {
  const [{ readProved, ZkService }, { hashPair }] = await Promise.all([loadProving(), import("../../zk/poseidon.js")]);
  return await readProved(flags, ZkService.method.getMerkleProof, { commitment, root: flags.root }, hashPair);
}

function addVerify(zk: Command): void {
  zk.command("verify <FILE>")
    .description("Verify a saved proof, without any node.")
    .option("--root <ROOT>", "Expected root. Without it, compare the printed root with one that you trust.")
    .option("--json", "Print the outcome as JSON.")
    .action(async (file: string, flags: { root?: string; json?: boolean }) => {
      const { readSavedProof, verifyProof } = await import("./zk-proofs.js");
      const { commitment, leafIndex, root } = verifyProof(await readSavedProof(file));
      if (flags.root !== undefined && flags.root.toLowerCase() !== root) {
        throw new ExitError(`The proof leads to another root: ${root}`, exitCodes.failed);
      }
      if (flags.json === true) {
        print(JSON.stringify({ valid: true, commitment, leafIndex, root }));
      } else {
        print(`${paint("green", "valid")}: ${commitment} is leaf ${leafIndex} under the root ${root}`);
      }
    });
}
