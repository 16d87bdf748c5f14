/** `gatehouse light`: serves proved responses on a local port. */
import { type Command, Option } from "commander";
import { logLevels } from "../../base/logging/log-levels.js";
import { wholeNumber } from "../usage/flags.js";
import type { LightFlags } from "./run-light.js";

export function addLight(command: Command): void {
  command
    .argument("<URL...>", "Nodes to ask, in this order: where one fails or lies, the next one is asked.")
    .requiredOption("--trust <GENESIS>", "The network that is believed: the hash of its genesis.")
    .option("--port <PORT>", "Port of 127.0.0.1 to answer on; 0 for a free one.", wholeNumber, 53_560)
    .option("--data-dir <DIR>", "Where the newest block that was seen is remembered.", "data/light")
    .option(
      "--max-age <SECONDS>",
      "How long ago an authority must have said at least that a block is the newest; 120 when left out.",
      wholeNumber,
    )
    .addOption(new Option("--log-level <LEVEL>", "How much to log, to stderr.").choices([...logLevels]).default("info"))
    .option("--json", "Print a ready event, and log lines of JSON.")
    .addHelpText(
      "after",
      `
Programs that know nothing of proofs read from this port as from a node: storage programs, nullifiers, the commitment
tree, blocks, in plain HTTP. Each answer is proved before it is given. What cannot be proved is answered with status
501: lists, searches, health. Programs that not everybody may read are read with gatehouse storage get --verify.

A node that lies is named in the log and left alone for ten minutes. When an authority has signed two blocks of one
number, both are kept in the data directory, and nothing is answered until you remove that file.

Example:
  gatehouse light --trust 0x… https://node-one.example.org https://node-two.example.org`,
    )
    .action(async (urls: string[], flags: LightFlags) => {
      const { runLight } = await import("./run-light.js");
      await runLight(urls, flags);
    });
}
