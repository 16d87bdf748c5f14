#!/usr/bin/env node
/** The program: one command line, run by this process. */

// A reader that has seen enough, such as head, is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(error.code === "EPIPE" ? 0 : 1);
});

// Nor is one of the log: what is told of its lines is in the metrics.
process.stderr.on("error", () => undefined);

// To a node SIGHUP is a wish, to other commands the end; which of them this is shows only when the modules are there.
const hangUps: string[] = [];
const note = (name: string): unknown => hangUps.push(name);
process.on("SIGHUP", note);
const { run } = await import("./cli/run.js");
const ended = run(process.argv.slice(2));
process.off("SIGHUP", note);
if (hangUps.length > 0 && process.listenerCount("SIGHUP") === 0) {
  process.kill(process.pid, "SIGHUP");
}
process.exitCode = await ended;
