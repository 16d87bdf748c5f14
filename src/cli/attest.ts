/** `gatehouse attest`: verifies TLSNotary attestations without a node. */
import type { Command } from "commander";
import { optionsByKey } from "../config/options.js";
import { parseInteger } from "./usage/flags.js";
import type { VerifyAttestationFlags } from "./attest-file.js";

export function addAttest(attest: Command): void {
  const verify = attest
    .command("verify <FILE>")
    .description("Verify an attestation offline: base64, hex, the JSON of browser clients, or the bytes themselves.")
    .option("--max-age <SECONDS>", "Maximum age of the attested connection; 0 accepts any.", parseInteger, 0)
    .option("--servers <NAMES>", "Comma-separated servers to accept. Default: any.", parseList, [])
    .option("--json", "Print the outcome as JSON.")
    .addHelpText(
      "after",
      `
What a verified attestation proves, and what it does not: docs/attestation.md.

Example:
  gatehouse attest verify presentation.json --notary-keys 1:02ab…`,
    );
  verify
    .addOption(
      verify
        .createOption("--notary-keys <KEYS>", "Comma-separated notaries to trust, such as 1:02ab…")
        .env(optionsByKey.notaryKeys.env)
        .argParser(parseList)
        .default([], "none, so that no attestation verifies"),
    )
    .action(async (file: string, flags: VerifyAttestationFlags) => {
      const { verifyAttestation } = await import("./attest-file.js");
      await verifyAttestation(file, flags);
    });
}

function parseList(value: string): string[] {
  return value
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}
