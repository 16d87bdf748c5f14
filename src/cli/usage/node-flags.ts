/** The flags of commands that work on what a node has, with or without it. */
import type { Command } from "commander";
import { optionsByKey } from "../../config/options.js";

/** Where the node has it. */
export interface NodeFiles {
  readonly dataDir?: string;
  readonly database?: string;
  readonly config?: string;
}

/** Adds `--data-dir`, `--database` and `--config`. */
export function addNodeFiles(command: Command): Command {
  const { dataDir, databaseUrl } = optionsByKey;
  return command
    .option("--data-dir <DIR>", `${dataDir.description} [env: ${dataDir.env}]`)
    .option("--database <URL>", `${databaseUrl.description} [env: ${databaseUrl.env}]`)
    .option("--config <FILE>", "The node's configuration file.");
}
