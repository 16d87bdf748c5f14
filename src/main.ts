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
const lasts = commands.find((command) => command.name === name)?.lasts;
const flags = [
  // 3 to 25 MB of room for young objects are not worth what they save in time. To servers they are, once they serve.
  "--semi-space-growth-factor=1",
  // Nor are, where all is over in a moment, 5 MB that V8's compilers take for what runs while modules are loaded. What runs
  // for longer is compiled all the same, and later: the budget is 60 times what it is otherwise. That of Node.js 20 alone
  // knows it by this name, and a flag that is not known is told of on stderr.
  ...(lasts === undefined && process.versions.v8.startsWith("11.")
    ? ["--no-sparkplug", "--interrupt-budget=4000000"]
    : []),
];
for (const flag of flags) {
  setFlagsFromString(flag);
}

const { run } = await import("./cli/run.js");
process.exitCode = await run(args);
process.removeAllListeners("beforeExit");
if (lasts === "server") {
  // A part of a node that could not be stopped may hold a timer or a connection, which must not keep the process.
  process.exit();
}
