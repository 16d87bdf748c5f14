#!/usr/bin/env node
/** The program: one command line, run by this process. */
import { setFlagsFromString } from "node:v8";

// A reader that has seen enough, such as head, is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(error.code === "EPIPE" ? 0 : 1);
});

// Nor is one of the log: what is told of its lines is in the metrics.
process.stderr.on("error", () => undefined);

const args = process.argv.slice(2);
const name = args.find((arg) => !arg.startsWith("-"));

// To a node SIGHUP is a wish, also while its modules are loaded; to other commands it is the end.
if (name === "start") {
  process.on("SIGHUP", () => undefined);
}

// Whatever a command waits for, it must not be that nothing can come any more: Node.js would end without a word.
process.once("beforeExit", () => {
  process.stderr.write(
    "gatehouse: The command ended before it was done, as nothing was left to wait for. Run it again.\n",
  );
  process.exit(1);
});

const { commands } = await import("./cli/commands.js");
if (!commands.some((command) => command.isServer && command.name === name)) {
  // Whatever comes of it is over in a moment: 3 to 25 MB of room for young objects are not worth what they save in time.
  setFlagsFromString("--semi-space-growth-factor=1");
}

const { run } = await import("./cli/run.js");
process.exitCode = await run(args);
process.removeAllListeners("beforeExit");
