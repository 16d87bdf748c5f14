/** Command line definition for commander. */
import { Command, type CommanderError } from "commander";
import { version } from "../base/version.js";
import { commands } from "./commands.js";
import { ExitError, exitCodes } from "./usage/errors.js";
import { fitHelp } from "./help.js";

/**
 * Creates the command line. It has all commands by name, and the requested ones with their arguments and flags.
 *
 * @param isRequested Returns true for the name of a requested command.
 */
export async function createProgram(isRequested: (name: string) => boolean): Promise<Command> {
  const program = new Command("gatehouse")
    .description("The face of a network node: gRPC services inside, plain HTTP and JSON outside.")
    .version(version)
    .addHelpText(
      "after",
      `
Try it:
  gatehouse devnet         two connected nodes
  gatehouse init           a network of your own; then
  gatehouse start          its first node
  gatehouse start --help   every option of a node
  gatehouse health         health of a running node

Exit codes:
  0  done
  1  failed, or rejected by the node
  2  wrong option, configuration or file
  3  the node does not respond`,
    );
  fitHelp(program);
  for (const { name, description, load } of commands) {
    const command = program.command(name).description(description);
    if (isRequested(name)) {
      (await load())(command, () => createProgram(() => true));
    }
  }
  unifyErrors(program, []);
  return program;
}

/** Converts the errors of commander to ExitError, with the matching help page. */
function unifyErrors(command: Command, above: readonly string[]): void {
  const names = [...above, command.name()];
  command.exitOverride((error) => {
    throw isHelp(error) ? error : new ExitError(describeUsageError(error, names.join(" ")), exitCodes.usage);
  });
  for (const subcommand of command.commands) {
    unifyErrors(subcommand, names);
  }
}

/** Returns true if the command ended after printing help or the version. */
function isHelp({ code, exitCode }: CommanderError): boolean {
  return exitCode === 0 || code === "commander.help";
}

/** Formats an error of commander in one line, with the command for help. */
function describeUsageError({ message }: CommanderError, command: string): string {
  const [first = "", ...more] = message.replace(/^error: /, "").split(/\s*\n\s*/);
  const summary = `${first.slice(0, 1).toUpperCase()}${first.slice(1)}`.replace(/[.:]?$/, "");
  return `${[summary, ...more].join(" ").trim()}${more.length > 0 && more.at(-1)!.endsWith(".") ? "" : "."} See: ${command} --help`;
}
