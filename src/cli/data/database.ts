/** `gatehouse database copy`: copies from SQLite to PostgreSQL, and back. */
import type { Command } from "commander";

export function addDatabase(command: Command): void {
  command
    .command("copy <FROM> <TO>")
    .description("Copy the database of a node that is stopped into an empty one, of the same engine or the other.")
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
Both are what --database takes: sqlite:PATH, a path, or
postgres://USER:PASSWORD@HOST/NAME. Everything goes along:
the chain, the mempool, the peers, and whose the database
is. A copy that was interrupted goes on when the same
command is run again; until it is finished no node starts
with it. In the end every row is read again and compared.

The key and the other files stay where they are: start the
node with the same --data-dir and the new --database.

Exit codes: 0 copied, and equal; 1 not copied.

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
