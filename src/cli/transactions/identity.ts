/** `gatehouse identity`: prints the headers that prove an identity, for curl. */
import type { Command } from "commander";
import { addReadFlags, type ReadFlags } from "../usage/flags.js";
import { printResult } from "../terminal/output.js";
import { identityOf, loadKey } from "./caller.js";

export function addIdentity(identity: Command): void {
  const headers = identity
    .command("headers")
    .description("Print headers for curl that prove an identity on one network, for five minutes.");
  addReadFlags(headers, "Key of the identity.")
    .addHelpText(
      "after",
      `
The command queries the node for its network. A node that you do not trust could report another network, to use your
headers there: give --network in that case.

Example:
  gatehouse identity headers --key alice.key | xargs curl http://127.0.0.1:53550/storage-program/stor-…`,
    )
    .action(async (flags: ReadFlags) => {
      await loadKey(flags.key);
      const proof = await identityOf(flags);
      const lines = Object.entries(proof).map(([name, value]) => `-H '${name}: ${value}'`);
      printResult(flags, proof, () => lines.join(" "));
    });
}
