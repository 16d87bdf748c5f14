/** Options of a node as flags, for commands that take the same options as `gatehouse start`. */
import { type Command, Option as Flag } from "commander";
import type { ConfigSources } from "../../config/config.js";
import { describeOption } from "../../config/declare.js";
import { configFile, options, optionsByKey } from "../../config/options.js";
import { readEnvironment } from "../../config/variables.js";
import { commandVariables } from "./flags.js";

/** Adds every option of a node, and `--config`. The configuration applies defaults and variables, in their precedence. */
export function addNodeOptions(command: Command): void {
  for (const option of [configFile, ...options]) {
    const { name, env, type } = option;
    const value = type.placeholder === undefined ? "" : ` <${type.placeholder}>`;
    command.addOption(new Flag(`--${name}${value}`, `${describeOption(option)} [env: ${env}]`));
  }
}

/** Adds the options that locate the files of a node, running or not. */
export function addNodeFiles(command: Command): Command {
  const { dataDir, databaseUrl } = optionsByKey;
  return command
    .option("--data-dir <DIR>", `${dataDir.description} [env: ${dataDir.env}]`)
    .option("--database <URL>", `${databaseUrl.description} [env: ${databaseUrl.env}]`)
    .option("--config <FILE>", "The node's configuration file.");
}

/** Loads the configuration from the flags of a command, the environment and the configuration file. */
export async function loadNodeConfig(command: Command) {
  const { loadConfig, pathOfConfigFile } = await import("../../config/config.js");
  const optionNames = new Set([configFile, ...options].map(({ name }) => name));
  const values = command.opts<Record<string, string | boolean | undefined>>();
  const given = command.options.filter((flag) => optionNames.has(flag.name()));
  const sources: ConfigSources = {
    flags: Object.fromEntries(given.map((flag) => [flag.name(), values[flag.attributeName()]])),
    env: readEnvironment(),
    otherVariables: commandVariables,
    cwd: process.cwd(),
  };
  return { config: loadConfig(sources), configFile: pathOfConfigFile(sources) };
}
