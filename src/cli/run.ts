/** The command line: one file for each command stands beside this one. */
import { Command } from "commander";
import { addAttest } from "./attest.js";
import { addBackup, addRestore } from "./backup.js";
import { addBlock } from "./block.js";
import { addDatabase } from "./database.js";
import { addDevnet } from "./devnet.js";
import { addHealth } from "./health.js";
import { addIdentity } from "./identity.js";
import { addInit } from "./init.js";
import { addJoin } from "./join.js";
import { addKeygen } from "./keygen.js";
import { ExitError } from "./output.js";
import { addPeers } from "./peers.js";
import { addReport } from "./report.js";
import { addStart } from "./start.js";
import { addStorage } from "./storage.js";
import { addTx } from "./tx.js";
import { addVerifyData } from "./verify-data.js";
import { addZk } from "./zk.js";
import { ConfigError } from "../config/config-error.js";
import { version } from "../base/version.js";

const commands = [
  addInit,
  addJoin,
  addStart,
  addDevnet,
  addKeygen,
  addHealth,
  addPeers,
  addReport,
  addStorage,
  addTx,
  addZk,
  addAttest,
  addIdentity,
  addBlock,
  addVerifyData,
  addBackup,
  addRestore,
  addDatabase,
];

/**
 * Runs one command, and says in one line what went wrong.
 *
 * @param args what stands after the program's name.
 * @returns the exit code; `start` and `devnet`, which run until a signal, end the process themselves.
 */
export async function run(args: readonly string[]): Promise<number> {
  const program = createProgram();
  try {
    if (args.length === 0) {
      program.help();
    }
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    return report(error);
  }
}

function createProgram(): Command {
  const program = new Command("gatehouse")
    .description("The face of a network node: gRPC services inside, plain HTTP and JSON outside.")
    .version(version)
    .showHelpAfterError("Run with --help to see what is possible.")
    .addHelpText(
      "after",
      `
Try it:
  gatehouse devnet                  two nodes that know each other, with sample data
  gatehouse init; gatehouse start   a network of your own
  gatehouse start --help            every option of a node
  gatehouse health                  how a running node is

Exit codes: 0 done, 1 failed, 2 wrong option or configuration, 3 the node cannot be reached.`,
    )
    .exitOverride();
  for (const add of commands) {
    add(program);
  }
  return program;
}

function report(error: unknown): number {
  if (error instanceof Error && error.name === "CommanderError") {
    const { code, exitCode } = error as Error & { code: string; exitCode: number };
    return exitCode === 0 || code === "commander.help" ? 0 : 2;
  }
  if (error instanceof ExitError && error.message === "") {
    return error.exitCode;
  }
  process.stderr.write(`gatehouse: ${error instanceof Error ? error.message : String(error)}\n`);
  if (error instanceof ExitError) {
    return error.exitCode;
  }
  return error instanceof ConfigError ? 2 : 1;
}
