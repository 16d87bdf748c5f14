/** `gatehouse database copy`: copies from SQLite to PostgreSQL, and back. */
import type { Command } from "commander";
import { InputError } from "../../base/errors/start-error.js";
import { databaseUrl } from "../../config/value-types.js";
import { printResult } from "../terminal/output.js";
import { startPhases } from "../terminal/progress.js";

export function addDatabase(command: Command): void {
  command
    .command("copy <FROM> <TO>")
    .description("Copy the database of a stopped node into an empty one, of the same engine or the other.")
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
FROM and TO have the form of --database: sqlite:PATH or
postgres://USER:PASSWORD@HOST/NAME. A path alone is that of
a SQLite file. The copy has
everything: the chain, the mempool, the peers, and the owner
of the database. Run the same command again to resume an
interrupted copy; no node starts with an incomplete one. At
the end, every row is read back and compared.

The key and the other files stay where they are: start the
node with the same --data-dir and the new --database.

Exit codes: 0 copied and identical, 1 not copied.

Examples:
  gatehouse database copy data/gatehouse.sqlite \\
    postgres://gatehouse:secret@db/gatehouse
  gatehouse database copy data/gatehouse.sqlite copy.sqlite`,
    )
    .action(async (from: string, to: string, flags: { readonly json?: boolean }) => {
      const { copyNodeDatabase } = await import("../../node/data/copy-database.js");
      const bars = startPhases();
      const { tables, resumed } = await copyNodeDatabase({
        ...{ from: await readUrl("FROM", from), to: await readUrl("TO", to) },
        onProgress: (step, done, total) => bars.update(`rows ${step}`, done, total, step === "copied" ? done : 0),
      });
      bars.end();
      const rows = Object.values(tables).reduce((sum, count) => sum + count, 0);
      const count = Object.keys(tables).length;
      printResult(
        flags,
        { ok: true, resumed, rows, tables },
        () => `Copied and compared ${rows} rows of ${count} tables: the copy is identical.`,
      );
    });
}

/** Returns the URL of a database. A path denotes a SQLite file. */
async function readUrl(argument: string, value: string): Promise<string> {
  const { z } = await import("zod");
  const url = /^[a-z]+:/.test(value) ? value : `sqlite:${value}`;
  if (!databaseUrl.schema(z).safeParse(url).success) {
    throw new InputError(`${argument} must be ${databaseUrl.allowed}, not "${value}".`);
  }
  return databaseUrl.resolve?.(url, process.cwd()) ?? url;
}
