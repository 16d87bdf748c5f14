/** `gatehouse doctor`: looks for problems of a node on this machine. */
import type { Command } from "commander";
import { addNodeOptions, configOf } from "../usage/node-options.js";

export function addDoctor(command: Command): void {
  command
    .option("--node <URL>", "Where the node answers on this machine; made from --host and --rpc-port.")
    .addHelpText(
      "after",
      `
Give it what the node is started with: the same flags, environment and file. The node may run, or not; nothing is changed. Each line is ok, warn, FAIL, or skip where it cannot be told, with what to do.

Exit codes: 0 nothing has failed, 1 something has, 2 the configuration is wrong.

Examples:
  gatehouse doctor --data-dir /var/lib/gatehouse
  gatehouse doctor --config /etc/gatehouse.yaml --json`,
    );
  addNodeOptions(command);
  command.action(async (flags: { readonly node?: string }) => {
    const config = await configOf(command);
    const { examine } = await import("./examination.js");
    await examine(config, flags.node);
  });
}
