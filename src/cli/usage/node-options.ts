/** The options of a node as flags, for the commands that are given what a node is started with. */
import { type Command, Option as Flag } from "commander";
import type { Config } from "../../config/config.js";
import { describeOption, type Option } from "../../config/declare.js";
import { configFile, options } from "../../config/options.js";
import { commandVariables } from "./flags.js";

/** Adds all of them. */
export function addNodeOptions(command: Command): void {
  for (const option of [configFile, ...options]) {
    command.addOption(toFlag(option));
  }
}

/** The configuration that a command with these flags is given: by them, the environment, and the file. */
export async function configOf(command: Command): Promise<Config> {
  const { loadConfig, processSources } = await import("../../config/config.js");
  const given = command.opts<Record<string, string | boolean | undefined>>();
  const isOption = new Set([configFile, ...options].map(({ name }) => name));
  const flags = Object.fromEntries(
    command.options
      .filter((flag) => isOption.has(flag.name()))
      .map((flag) => [flag.name(), given[flag.attributeName()]]),
  );
  return loadConfig(processSources({ flags, otherVariables: commandVariables }));
}

/** Defaults and the environment are shown here, and applied by the configuration, which knows their order. */
function toFlag(option: Option): Flag {
  const { name, env, type } = option;
  const value = type.placeholder === undefined ? "" : ` <${type.placeholder}>`;
  return new Flag(`--${name}${value}`, `${describeOption(option)} [env: ${env}]`);
}
