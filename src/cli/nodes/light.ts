/** `gatehouse light`: serves proved responses on a local port. */
import { type Command, Option } from "commander";
import { logLevels } from "../../base/logging/log-levels.js";
import { numberBetween, parseInteger } from "../usage/flags.js";
import type { LightFlags } from "./run-light.js";

export function addLight(command: Command): void {
  command
    .argument("<URL...>", "Nodes to query, in this order: if one fails or sends a false proof, the next is queried.")
    .requiredOption("--trust <GENESIS>", "Genesis hash of the network to trust.")
    .option("--port <PORT>", "Port of 127.0.0.1 to listen on; 0 for any free port.", numberBetween(0, 65_535), 53_560)
    .option("--data-dir <DIR>", "Directory that stores the latest proved block.", "data/light")
    .option(
      "--max-age <SECONDS>",
      "Reject proofs whose latest authority timestamp is older than this. Default: 120.",
      parseInteger,
    )
    .addOption(
      new Option("--log-level <LEVEL>", "Log level; the log goes to stderr.").choices([...logLevels]).default("info"),
    )
    .option("--json", "Print a ready event, and log as JSON.")
    .addHelpText(
      "after",
      `
Clients without support for proofs read storage programs, nullifiers, the commitment tree and blocks from this port over
plain HTTP, as from a node. The light node verifies the proof of each response first. Requests without a proof, such as
lists, searches and health, get status 501. Read private programs with gatehouse storage get --verify.

A node that sends a false proof is logged and not queried for ten minutes. If an authority signs two blocks with the same
number (a fork), both are stored in the data directory, and all requests fail until you remove that file.

Example:
  gatehouse light --trust 0x… https://node-one.example.org https://node-two.example.org`,
    )
    .action(async (urls: string[], flags: LightFlags) => {
      const { runLight } = await import("./run-light.js");
      await runLight(urls, flags);
    });
}
