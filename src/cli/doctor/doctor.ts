/** `gatehouse doctor`: looks for problems of a node on this machine. */
import type { Command } from "commander";
import { addNodeOptions, configOf } from "../usage/node-options.js";

export function addDoctor(command: Command): void {
  command
    .option("--node <URL>", "Address of the node on this machine. Default: built from --host and --rpc-port.")
    .addHelpText(
      "after",
      `
Pass the options of the node: the same flags, environment and configuration file. The node may run or not; nothing is changed. Each line is ok, warn or FAIL with advice, or skip if a check is not possible.

Exit codes: 0 no check failed, 1 a check failed, 2 the configuration is wrong.

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
