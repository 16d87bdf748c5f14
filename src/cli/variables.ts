import type { Command } from "commander";

/** Variables of all commands: one that another command reads is no misspelt option. */
export function variablesOf(command: Command): string[] {
  return [...command.options.flatMap(({ envVar }) => envVar ?? []), ...command.commands.flatMap(variablesOf)];
}
