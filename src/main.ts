#!/usr/bin/env node
/** Entry point of the program: runs one command line in this process. */
import { setFlagsFromString } from "node:v8";

// A reader that closes the pipe early, such as `head`, is not an error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(error.code === "EPIPE" ? 0 : 1);
});

// Ignore errors of stderr, the log's output. Metrics report the log lines that could not be written.
process.stderr.on("error", () => undefined);

const args = process.argv.slice(2);
const name = args.find((arg) => !arg.startsWith("-"));

// SIGHUP makes a running node reload its certificate. A node that still loads its modules must survive the signal, too;
// other commands end.
if (name === "start") {
  process.on("SIGHUP", () => undefined);
}

// If the event loop is empty before a command has finished, Node.js would exit without an error message. Report an
// error instead.
process.once("beforeExit", () => {
  process.stderr.write(
    "gatehouse: The command ended before it was done, as nothing was left to wait for. Run it again.\n",
  );
  process.exit(1);
});

const { longRunning } = await import("./cli/commands.js");
const kind = longRunning[name ?? ""];
const flags = [
  // Keep the young generation at its initial size. Growing it takes 3 to 25 MB and saves too little time. A server
  // removes this limit when it starts to serve.
  "--semi-space-growth-factor=1",
  // Keep V8 from spending 5 MB on optimizing code that runs only while modules load, in commands that end soon.
  // Long-running code is still compiled, but later: this interrupt budget is 60 times the default. Only the V8 of
  // Node.js 20 has these flag names. Other versions would warn about unknown flags on stderr.
  ...(kind === undefined && process.versions.v8.startsWith("11.")
    ? ["--no-sparkplug", "--interrupt-budget=4000000"]
    : []),
];
for (const flag of flags) {
  setFlagsFromString(flag);
}

const { run } = await import("./cli/run.js");
process.exitCode = await run(args);
process.removeAllListeners("beforeExit");
if (kind === "server") {
  // A timer or connection of a component that failed to stop must not keep the process alive.
  process.exit();
}
