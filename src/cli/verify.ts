/** `gatehouse verify`: checks a saved proof without a node. */
import type { Command } from "commander";

export function addVerify(command: Command): void {
  command
    .argument("<FILE>", "Proof that --save wrote, or the response of GET /state/proof; - is stdin.")
    .requiredOption("--genesis-hash, --genesis <FILE|HASH>", "Network to trust: its genesis file, or the genesis hash.")
    .option("--json", "Print the proved facts as JSON.")
    .addHelpText(
      "after",
      `
Verifies the authority's signature, the network, and all paths and values. The time at which the block was the latest is
printed, but not checked: a proof stays valid for its block. For the limits of proofs, see docs/proofs.md.

Exit codes: 0 valid, 1 invalid, 2 a file cannot be read.

Examples:
  gatehouse storage get stor-… title --verify 0x… --save proof.json
  gatehouse verify proof.json --genesis 0x…`,
    )
    .action(async (file: string, flags: { readonly genesis: string; readonly json?: boolean }) => {
      const { verifyFile } = await import("./verify-file.js");
      await verifyFile(file, flags);
    });
}
