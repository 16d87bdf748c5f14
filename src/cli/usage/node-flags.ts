/** Flags of commands that work on the files of a node, running or not. */
import type { Command } from "commander";
import { optionsByKey } from "../../config/options.js";

/** Locations of the node's files. */
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
