/** `gatehouse zk`: adds commitments, spends nullifiers, fetches and verifies proofs. */
import type { DescMessage, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import type { Command } from "commander";
import type { ZkService } from "../../../gen/gatehouse/zk/v1/zk_pb.js";
import { requestOk } from "../calls/request-node.js";
import { paint, printResult, table } from "../terminal/output.js";
import { ExitError } from "../usage/errors.js";
import { writeOutput } from "../usage/files.js";
import {
  addChangeFlags,
  addNodeFlags,
  addVerifyFlags,
  type ChangeFlags,
  isVerifying,
  type NodeFlags,
  type VerifyFlags,
} from "../usage/flags.js";
import { submitAndReport } from "./submit.js";

type ReadFlags = NodeFlags & VerifyFlags;

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
      const operation = { case: "addCommitment" as const, value: { commitment } };
      await submitAndReport(flags, { case: "zk", value: { operation } }, { commitment });
    },
  );

  addChangeFlags(zk.command("nullify <HASH>").description("Spend a nullifier, permanently."))
    .option(
      "--proof <FILE>",
      "Groth16 proof in the format of circom's tools; required if the genesis has a verification key.",
    )
    .option("--root <ROOT>", "Root that the proof was generated for.", "")
    .action(async (nullifierHash: string, flags: ChangeFlags & { proof?: string; root: string }) => {
      const { readGroth16 } = await import("./zk-proofs.js");
      const proof = flags.proof === undefined ? undefined : await readGroth16(flags.proof);
      const operation = { case: "spendNullifier" as const, value: { nullifierHash, root: flags.root, proof } };
      await submitAndReport(flags, { case: "zk", value: { operation } }, { nullifierHash });
    });

  addVerifyFlags(
    addNodeFlags(zk.command("nullifier <HASH>").description("Show if a nullifier is spent, and in which block.")),
  ).action(async (nullifierHash: string, flags: ReadFlags) => {
    const path = `/zk/nullifier/${encodeURIComponent(nullifierHash)}`;
    const text = await read(flags, path, ({ getNullifier }) => getNullifier, { nullifierHash });
    printResult(flags, text, () => {
      const { used, blockNumber, transactionHash } = JSON.parse(text) as {
        readonly used: boolean;
        readonly blockNumber: number | null;
        readonly transactionHash: string | null;
      };
      return used
        ? `${paint("yellow", "spent")} in block ${blockNumber} by ${transactionHash}`
        : paint("green", "unspent");
    });
  });

  addVerifyFlags(addNodeFlags(zk.command("root").description("Show the root of the commitment tree."))).action(
    async (flags: ReadFlags) => {
      const text = await read(flags, "/zk/merkle-root", ({ getMerkleRoot }) => getMerkleRoot, {});
      printResult(flags, text, () => {
        const { leafCount, blockNumber, rootHash } = JSON.parse(text) as {
          readonly rootHash: string;
          readonly leafCount: number;
          readonly blockNumber: number;
        };
        return table([
          ["LEAVES", "BLOCK", "ROOT"],
          [String(leafCount), String(blockNumber), rootHash],
        ]);
      });
    },
  );

  addVerifyFlags(
    addNodeFlags(zk.command("proof <COMMITMENT>").description("Fetch a proof that a commitment is in the tree.")),
  )
    .option("--root <ROOT>", "Root to prove under, from the last 256 blocks or ten minutes. Default: the current root.")
    .option("--out <FILE>", "Save the proof to a file, for gatehouse zk verify and for provers.")
    .action(async (commitment: string, flags: ReadFlags & { root?: string; out?: string }) => {
      const { root, out } = flags;
      const query = root === undefined ? "" : `?root=${encodeURIComponent(root)}`;
      const path = `/zk/merkle/proof/${encodeURIComponent(commitment)}${query}`;
      const text = await read(flags, path, ({ getMerkleProof }) => getMerkleProof, { commitment, root }, true);
      if (out !== undefined) {
        await writeOutput(out, `${text}\n`);
      }
      printResult(flags, text, () => {
        const { proof, blockNumber } = JSON.parse(text) as {
          readonly proof: { readonly root: string; readonly leafIndex: number };
          readonly blockNumber: number;
        };
        return [
          ...table([
            ["LEAF", "BLOCK", "ROOT"],
            [String(proof.leafIndex), String(blockNumber), proof.root],
          ]),
          paint("dim", out === undefined ? "save it with --out FILE, or print it with --json" : `saved to ${out}`),
        ];
      });
    });

  zk.command("verify <FILE>")
    .description("Verify a saved proof, without any node.")
    .option("--root <ROOT>", "Expected root. Without it, compare the printed root with one that you trust.")
    .option("--json", "Print the outcome as JSON.")
    .action(async (file: string, flags: { root?: string; json?: boolean }) => {
      const { verifyMerkleProof } = await import("./zk-proofs.js");
      const { commitment, leafIndex, root } = await verifyMerkleProof(file);
      if (flags.root !== undefined && flags.root.toLowerCase() !== root) {
        throw new ExitError(`The proof leads to another root: ${root}`);
      }
      const body = { valid: true, commitment, leafIndex, root };
      const text = `${paint("green", "valid")}: ${commitment} is leaf ${leafIndex} under the root ${root}`;
      printResult(flags, body, () => text);
    });
}

/** Reads a path, or with `--verify` the proved response of a method. The code for proofs is loaded only then. */
async function read<I extends DescMessage, O extends DescMessage>(
  flags: ReadFlags,
  path: string,
  methodOf: (methods: (typeof ZkService)["method"]) => DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  needsHash = false,
): Promise<string> {
  if (!isVerifying(flags)) {
    return await requestOk(flags.node, path);
  }
  const [{ readProved }, zk, poseidon] = await Promise.all([
    import("./proved-reads.js"),
    import("../../../gen/gatehouse/zk/v1/zk_pb.js"),
    needsHash ? import("../../zk/poseidon.js") : undefined,
  ]);
  return await readProved(flags, methodOf(zk.ZkService.method), request, poseidon?.hashPair);
}
