/** `gatehouse verify-data`: verifies all stored data without a node. */
import type { Command } from "commander";
import { messageFor } from "../../base/errors/corruption.js";
import { operatorErrorFor, isDatabaseCorruption } from "../../base/errors/database-error-kind.js";
import { errorMessage } from "../../base/errors/error-message.js";
import { InputError } from "../../base/errors/start-error.js";
import { type Finding, type Verification, type VerifiedKind, verifiedKinds } from "../../base/errors/verification.js";
import { paint, printResult } from "../terminal/output.js";
import { startPhases } from "../terminal/progress.js";
import { ExitError } from "../usage/errors.js";
import { addNodeFiles, loadNodeConfig } from "../usage/node-options.js";

/** Findings, and the number of verified items of each kind. */
interface Outcome {
  readonly counts: Readonly<Partial<Record<VerifiedKind, number>>>;
  readonly findings: readonly Finding[];
}

export function addVerifyData(command: Command): void {
  addNodeFiles(command)
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
Reads the database without changing it, whether the node runs or not. Verifies:

  - every block: its link to the previous block, the authority's signature, the senders' signatures, and its results
  - the commitment tree, up to the roots in the headers
  - every program, nullifier and nonce, against its checksum and the state root of the latest header

Prints each error on a line of its own. To repair a database, restore a backup, or move the database away and let the node
fetch the chain again from its peers.

Exit codes: 0 no errors, 1 errors found, 2 there is no database to verify.

Examples:
  gatehouse verify-data --data-dir /var/lib/gatehouse
  gatehouse verify-data --database postgres://gatehouse:secret@db/gatehouse --json`,
    )
    .action(async (flags: { readonly json?: boolean }) => {
      const { config } = await loadNodeConfig(command);
      const { counts, findings } = await verify(config.databaseUrl, flags.json === true);
      const body = {
        ok: findings.length === 0,
        ...Object.fromEntries(verifiedKinds.map((kind) => [kind, counts[kind] ?? 0])),
        findings,
      };
      printResult(flags, body, () => {
        const checked = verifiedKinds.map((kind) => `${counts[kind] ?? 0} ${nouns[kind]}`).join(", ");
        const found = findings.length === 0 ? "no errors." : `${findings.length} corrupt.`;
        return [...findings.map(({ sentence }) => paint("red", sentence)), `Verified ${checked}: ${found}`];
      });
      if (findings.length > 0) {
        throw new ExitError("");
      }
    });
}

const nouns: Readonly<Record<VerifiedKind, string>> = {
  blocks: "blocks",
  roots: "roots of the commitment tree",
  nodes: "nodes of the tree",
  nullifiers: "nullifiers",
  senders: "senders",
  programs: "storage programs",
};

async function verify(url: string, isQuiet: boolean): Promise<Outcome> {
  const { openStoredData } = await import("../../node/data/stored-data.js");
  const stored = await openStoredData(url).catch((error: unknown) => {
    if (isDatabaseCorruption(error)) {
      return { what: "the database", sentence: messageFor(error, "it cannot be opened") };
    }
    throw new InputError(errorMessage(operatorErrorFor(error)));
  });
  if ("sentence" in stored) {
    return { counts: {}, findings: [stored] };
  }
  try {
    return await runVerification(stored.verification, isQuiet);
  } finally {
    await stored.close();
  }
}

/** Runs the verification to its end. Shows a progress bar if stderr is a terminal. */
export async function runVerification(verification: Verification, isQuiet: boolean): Promise<Outcome> {
  const counts: Partial<Record<VerifiedKind, number>> = {};
  const findings: Finding[] = [];
  const bars = startPhases();
  for await (const { kind, done, total, findings: newFindings } of verification) {
    counts[kind] = done;
    findings.push(...newFindings);
    if (!isQuiet && process.stderr.isTTY && total > 0) {
      bars.update(kind, done, total);
    }
  }
  bars.end();
  return { counts, findings };
}
