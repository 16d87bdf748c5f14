/** Options of a node as flags, for commands that take the same options as `gatehouse start`. */
import { type Command, Option as Flag } from "commander";
import type { Config } from "../../config/config.js";
import { describeOption, type Option } from "../../config/declare.js";
import { configFile, options } from "../../config/options.js";
import { commandVariables } from "./flags.js";

/** Adds every option of a node, and `--config`. */
export function addNodeOptions(command: Command): void {
  for (const option of [configFile, ...options]) {
    command.addOption(toFlag(option));
  }
}

/** Loads the configuration from the flags of a command, the environment and the configuration file. */
export async function configOf(command: Command): Promise<Config> {
  const { loadConfig, processSources } = await import("../../config/config.js");
  const values = command.opts<Record<string, string | boolean | undefined>>();
  const optionNames = new Set([configFile, ...options].map(({ name }) => name));
  const flags = Object.fromEntries(
    command.options
      .filter((flag) => optionNames.has(flag.name()))
      .map((flag) => [flag.name(), values[flag.attributeName()]]),
  );
  return loadConfig(processSources({ flags, otherVariables: commandVariables }));
}

/** Describes an option with its default and variable. The configuration applies them, in the right precedence. */
function toFlag(option: Option): Flag {
  const { name, env, type } = option;
  const value = type.placeholder === undefined ? "" : ` <${type.placeholder}>`;
  return new Flag(`--${name}${value}`, `${describeOption(option)} [env: ${env}]`);
}
