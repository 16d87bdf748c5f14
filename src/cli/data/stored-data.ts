/** Implementation of `gatehouse verify-data`. */
import { messageFor } from "../../base/errors/corruption.js";
import { operatorErrorFor, isDatabaseCorruption } from "../../base/errors/database-error-kind.js";
import { errorMessage } from "../../base/errors/error-message.js";
import { type Finding, type Verification, type VerifiedKind, verifiedKinds } from "../../base/errors/verification.js";
import { openStoredData } from "../../node/data/stored-data.js";
import { ExitError, exitCodes } from "../usage/errors.js";
import type { NodeFiles } from "../usage/node-flags.js";
import { paint, print } from "../terminal/output.js";
import { type Progress, startProgress } from "../terminal/progress.js";
import { readNodeConfig } from "./node-config.js";

/** Flags that select the database, and the output format. */
export interface VerifyDataFlags extends NodeFiles {
  readonly json?: boolean;
}

/** Findings, and the number of verified items of each kind. */
interface Outcome {
  readonly counts: Readonly<Partial<Record<VerifiedKind, number>>>;
  readonly findings: readonly Finding[];
}

/** Verifies a database and prints the items that are not as stored. */
export async function verifyData(flags: VerifyDataFlags): Promise<void> {
  const outcome = await verify(readNodeConfig(flags).config.databaseUrl, flags.json === true);
  print(...(flags.json === true ? [JSON.stringify(toJson(outcome))] : describe(outcome)));
  if (outcome.findings.length > 0) {
    throw new ExitError("", exitCodes.failed);
  }
}

async function verify(url: string, isQuiet: boolean): Promise<Outcome> {
  const stored = await openStoredData(url).catch((error: unknown) => {
    if (isDatabaseCorruption(error)) {
      return { what: "the database", sentence: messageFor(error, "it cannot be opened") };
    }
    throw new ExitError(errorMessage(operatorErrorFor(error)), exitCodes.usage);
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
  let bar: { readonly kind: VerifiedKind; readonly progress: Progress } | undefined;
  for await (const { kind, done, total, findings: newFindings } of verification) {
    counts[kind] = done;
    findings.push(...newFindings);
    if (!isQuiet && process.stderr.isTTY && total > 0) {
      if (bar?.kind !== kind) {
        bar?.progress.end();
        bar = { kind, progress: startProgress(kind, total) };
      }
      bar.progress.update(done, total);
    }
  }
  bar?.progress.end();
  return { counts, findings };
}

const nouns: Readonly<Record<VerifiedKind, string>> = {
  blocks: "blocks",
  roots: "roots of the commitment tree",
  nodes: "nodes of the tree",
  nullifiers: "nullifiers",
  senders: "senders",
  programs: "storage programs",
};

function describe({ counts, findings }: Outcome): string[] {
  const checked = verifiedKinds.map((kind) => `${counts[kind] ?? 0} ${nouns[kind]}`).join(", ");
  const lines = findings.map(({ sentence }) => paint("red", sentence));
  return [...lines, `Verified ${checked}: ${findings.length === 0 ? "no errors." : `${findings.length} corrupt.`}`];
}

function toJson({ counts, findings }: Outcome) {
  return {
    ok: findings.length === 0,
    ...Object.fromEntries(verifiedKinds.map((kind) => [kind, counts[kind] ?? 0])),
    findings,
  };
}
