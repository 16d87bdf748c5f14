#!/usr/bin/env node
/** The command line. One file for each command stands in cli/. */
import { Command } from "commander";
import { addAttest } from "./cli/attest.js";
import { addBlock } from "./cli/block.js";
import { addDevnet } from "./cli/devnet.js";
import { addHealth } from "./cli/health.js";
import { addIdentity } from "./cli/identity.js";
import { addKeygen } from "./cli/keygen.js";
import { ExitError } from "./cli/output.js";
import { addPeers } from "./cli/peers.js";
import { addReport } from "./cli/report.js";
import { addStart } from "./cli/start.js";
import { addStorage } from "./cli/storage.js";
import { addTx } from "./cli/tx.js";
import { addZk } from "./cli/zk.js";
import { ConfigError } from "./config/config-error.js";
import { version } from "./base/version.js";

const program = new Command("gatehouse")
  .description("The face of a network node: gRPC services inside, plain HTTP and JSON outside.")
  .version(version)
  .showHelpAfterError("Run with --help to see what is possible.")
  .addHelpText(
    "after",
    `
Try it:
  gatehouse devnet                  two nodes that know each other, with sample data
  gatehouse start --help            every option of a node
  gatehouse health                  how a running node is

Exit codes: 0 done, 1 failed, 2 wrong option or configuration, 3 the node cannot be reached.`,
  )
  .exitOverride();

for (const add of [
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
]) {
  add(program);
}

// A reader that has seen enough, such as head, is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(error.code === "EPIPE" ? 0 : 1);
});

try {
  if (process.argv.length <= 2) {
    program.help();
  }
  await program.parseAsync();
} catch (error) {
  process.exitCode = report(error);
}

/** Says what went wrong in one line, and gives the exit code. */
function report(error: unknown): number {
  if (error instanceof Error && error.name === "CommanderError") {
    const { code, exitCode } = error as Error & { code: string; exitCode: number };
    return exitCode === 0 || code === "commander.help" ? 0 : 2;
  }
  process.stderr.write(`gatehouse: ${error instanceof Error ? error.message : String(error)}\n`);
  if (error instanceof ExitError) {
    return error.exitCode;
  }
  return error instanceof ConfigError ? 2 : 1;
}
