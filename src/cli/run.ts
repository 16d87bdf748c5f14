/** Entry point of the command line, with one format for all errors. */
import { CommanderError } from "commander";
import { operatorErrorFor } from "../base/errors/database-error-kind.js";
import { InputError } from "../base/errors/start-error.js";
import { optionsByKey } from "../config/options.js";
import { readEnvironment, rejectUnknownVariables, deleteEmptyVariables } from "../config/variables.js";
import { trustAuthorities } from "./calls/authorities.js";
import { longRunning } from "./commands.js";
import { createProgram } from "./program.js";
import { ExitError, exitCodes } from "./usage/errors.js";
import { commandVariables, type TrustFlags } from "./usage/flags.js";

/**
 * Runs one command. Prints an error as one line.
 *
 * @returns Exit code. `start` and `devnet` run until a signal and end the process themselves.
 */
export async function run(args: readonly string[]): Promise<number> {
  // The program itself has no options with a value, so the first argument other than an option is a command.
  const [first, second] = args.filter((arg) => !arg.startsWith("-"));
  deleteEmptyVariables();
  try {
    const requested = first === "help" ? second : first;
    const isHelp = args.some((arg) => arg === "--help" || arg === "-h");
    if (longRunning[first ?? ""] === "server" && !isHelp) {
      // Before the modules of the node are loaded, which needs many files at once.
      (await import("../node/lifecycle/descriptors.js")).checkDescriptors();
    }
    const program = await createProgram((name) => name === requested);
    program.hook("preAction", async (_, command) => {
      rejectUnknownVariables(readEnvironment(), commandVariables);
      await trustAuthorities(command.opts<TrustFlags>().ca);
    });
    if (args.length === 0) {
      program.help();
    }
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) {
      return 0;
    }
    const { message, errorCode, exitCode } = toExitError(error);
    if (message !== "") {
      const isJson =
        isJsonRequested(args) || (first === "start" && readEnvironment()[optionsByKey.json.env] === "true");
      const text = isJson ? JSON.stringify({ error: message, errorCode, exitCode }) : `gatehouse: ${message}`;
      process.stderr.write(`${text}\n`);
    }
    return exitCode;
  }
}

/** Returns true if the arguments request JSON. The format then applies to errors as well, even those of the parser. */
function isJsonRequested(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return args.slice(0, end === -1 ? args.length : end).includes("--json");
}

function toExitError(thrown: unknown): ExitError {
  const error = operatorErrorFor(thrown);
  if (error instanceof ExitError) {
    return error;
  }
  const cause = error instanceof Error ? error.cause : undefined;
  const isUsage = error instanceof InputError || cause instanceof InputError;
  return new ExitError(
    error instanceof Error ? error.message : String(error),
    isUsage ? exitCodes.usage : exitCodes.failed,
  );
}
