/** `gatehouse devnet`: runs a demonstration network in one process. */
import type { Command } from "commander";
import { optionsByKey } from "../../config/options.js";
import { numberBetween } from "../usage/flags.js";
import type { DevnetFlags } from "./network.js";

const firstPort = Number(optionsByKey.rpcPort.fallback);
const maxNodes = 16;

export function addDevnet(command: Command): void {
  command
    .option(
      "--nodes <NUMBER>",
      `Number of nodes, 1 to ${maxNodes}; a single node is dormant.`,
      numberBetween(1, maxNodes),
      2,
    )
    .option(
      "--rpc-port <PORT>",
      "First port to try; each node uses the next free one.",
      numberBetween(1, 65_000),
      firstPort,
    )
    .option("--data-dir <DIR>", "Directory for the nodes' data. Default: a temporary one, deleted at the end.")
    .option("--log-level <LEVEL>", "Log level; the log goes to stderr.", "warn")
    .option("--json", "Print one ready event for each node, then a network-ready event.")
    .action(async (flags: DevnetFlags) => {
      const { runNetwork } = await import("./network.js");
      await runNetwork(flags);
    });
}
