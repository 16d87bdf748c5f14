/** `gatehouse verify`: checks a saved proof without a node. */
import type { Command } from "commander";
import type { VerifyFileFlags } from "./verify-file.js";

export function addVerify(command: Command): void {
  command
    .argument("<FILE>", "A proof that --save made, or the answer to GET /state/proof; - is stdin.")
    .requiredOption("--genesis <FILE|HASH>", "The network that is believed: its genesis, or the hash of that.")
    .option("--json", "Print what is proved as JSON.")
    .addHelpText(
      "after",
      `
Checked are the authority's signature, the network, and all paths and values. When the block was the newest is printed,
not judged: a proof stays true of its block. What else a proof does not show: docs/proofs.md.

Exit codes: 0 it holds, 1 it does not, 2 a file cannot be read.

Examples:
  gatehouse storage get stor-… title --verify 0x… --save proof.json
  gatehouse verify proof.json --genesis 0x…`,
    )
    .action(async (file: string, flags: VerifyFileFlags) => {
      const { verifyFile } = await import("./verify-file.js");
      await verifyFile(file, flags);
    });
}
