/** The flags of commands that work on what a node has, with or without it. */
import type { Command } from "commander";
import { type Config, loadConfig, pathOfConfigFile, processSources } from "../config/config.js";
import { optionsByKey } from "../config/options.js";
import { variablesOf } from "./variables.js";

/** Where the node has it. */
export interface NodeFlags {
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

/**
 * The node's configuration, as a start with these flags would have it.
 *
 * @param program the command of which all others are parts.
 */
export function readNodeConfig(
  { dataDir, database, config }: NodeFlags,
  program: Command,
): { readonly config: Config; readonly configFile: string | undefined } {
  const given = { "data-dir": dataDir, database, config };
  const flags = Object.fromEntries(
    Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  const sources = processSources({ flags, otherVariables: variablesOf(program) });
  return { config: loadConfig(sources), configFile: pathOfConfigFile(sources) };
}
