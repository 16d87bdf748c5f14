/** `gatehouse database copy`: copies from SQLite to PostgreSQL, and back. */
import type { Command } from "commander";

export function addDatabase(command: Command): void {
  command
    .command("copy <FROM> <TO>")
    .description("Copy the database of a stopped node into an empty one, of the same engine or the other.")
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
FROM and TO have the form of --database: sqlite:PATH, a
path, or postgres://USER:PASSWORD@HOST/NAME. The copy has
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
      const { runDatabaseCopy } = await import("./run-database-copy.js");
      await runDatabaseCopy(from, to, flags.json === true);
    });
}
