/** `gatehouse verify-data`: looks at everything that is stored, without a node. */
import type { Command } from "commander";
import { sentenceOf } from "../base/damage.js";
import { isDatabaseDamage } from "../base/database-trouble.js";
import { messageOf } from "../base/message-of.js";
import { type Finding, type Verification, type VerifiedKind, verifiedKinds } from "../base/verification.js";
import { addNodeFiles, type NodeFlags, readNodeConfig } from "./node-flags.js";
import { ExitError, paint, print } from "./output.js";
import { type Progress, startProgress } from "./progress.js";

interface Flags extends NodeFlags {
  readonly json?: boolean;
}

/** What was found, and how many of each kind were looked at. */
interface Outcome {
  readonly counts: Readonly<Partial<Record<VerifiedKind, number>>>;
  readonly findings: readonly Finding[];
}

/** Adds the command. */
export function addVerifyData(program: Command): void {
  addNodeFiles(program.command("verify-data"))
    .description("Check that a node's database holds what was signed and stored.")
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
Reads the database and changes nothing; the node may run, or not. Checked are, of every block, that it comes after the one
before it, that an authority signed it, and its senders their transactions; what its transactions made; the commitment
tree up to the roots that headers name; nullifiers; and every program, document and field against the checksum that it was
stored with. Not checked is what only applying all blocks anew would show: a change of a document together with its
checksum. What does not fit is told in one line each.

What to do then: restore a backup, or move the database away and let the node follow the chain anew from its peers.

Exit codes: 0 everything fits, 1 something does not, 2 there is no database to look at.

Examples:
  gatehouse verify-data --data-dir /var/lib/gatehouse
  gatehouse verify-data --database postgres://gatehouse:secret@db/gatehouse --json`,
    )
    .action(async (flags: Flags) => {
      const outcome = await verify(readNodeConfig(flags, program).config.databaseUrl, flags.json === true);
      print(...(flags.json === true ? [JSON.stringify(toJson(outcome))] : describe(outcome)));
      if (outcome.findings.length > 0) {
        throw new ExitError("", 1);
      }
    });
}

async function verify(url: string, isQuiet: boolean): Promise<Outcome> {
  // Loaded here, since it takes longer than most other commands do.
  const { openStoredData } = await import("../node/stored-data.js");
  const stored = await openStoredData(url).catch((error: unknown) => {
    if (isDatabaseDamage(error)) {
      return { what: "the database", sentence: sentenceOf(error, "it cannot be opened") };
    }
    throw new ExitError(messageOf(error), 2);
  });
  if ("sentence" in stored) {
    return { counts: {}, findings: [stored] };
  }
  try {
    return await collect(stored.verification, isQuiet);
  } finally {
    await stored.close();
  }
}

/** Goes to the end, with a bar where somebody looks. */
export async function collect(verification: Verification, isQuiet: boolean): Promise<Outcome> {
  const counts: Partial<Record<VerifiedKind, number>> = {};
  const findings: Finding[] = [];
  let bar: { readonly kind: VerifiedKind; readonly progress: Progress } | undefined;
  for await (const { kind, done, total, findings: found } of verification) {
    counts[kind] = done;
    findings.push(...found);
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
  programs: "storage programs",
};

function describe({ counts, findings }: Outcome): string[] {
  const looked = verifiedKinds.map((kind) => `${counts[kind] ?? 0} ${nouns[kind]}`).join(", ");
  const lines = findings.map(({ sentence }) => paint("red", sentence));
  return [
    ...lines,
    `Looked at ${looked}: ${findings.length === 0 ? "everything fits." : `${findings.length} do not fit.`}`,
  ];
}

function toJson({ counts, findings }: Outcome) {
  return {
    ok: findings.length === 0,
    ...Object.fromEntries(verifiedKinds.map((kind) => [kind, counts[kind] ?? 0])),
    findings,
  };
}
