/** `gatehouse identity`: the headers that prove an identity, for curl. */
import type { Command } from "commander";
import { addKeyFlag, identityHeaders, loadKey } from "./caller.js";
import { print } from "./output.js";

/** Adds the commands. */
export function addIdentity(program: Command): void {
  const identity = program.command("identity").description("Prove who you are.");
  addKeyFlag(
    identity
      .command("headers")
      .description("Print the three headers that prove an identity, for curl; they hold for five minutes.")
      .option("--json", "Print JSON.")
      .addHelpText(
        "after",
        `
Example:
  gatehouse identity headers --key alice.key | xargs curl http://127.0.0.1:53550/storage-program/stor-…`,
      ),
    "The key of the identity.",
  ).action(async ({ key, json }: { key?: string; json?: boolean }) => {
    const headers = identityHeaders(await loadKey(key));
    print(
      json === true
        ? JSON.stringify(headers)
        : Object.entries(headers)
            .map(([name, value]) => `-H '${name}: ${value}'`)
            .join(" "),
    );
  });
}
