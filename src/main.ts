#!/usr/bin/env node
/** The program: one command line, run by this process. */
import { run } from "./cli/run.js";

// A reader that has seen enough, such as head, is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(error.code === "EPIPE" ? 0 : 1);
});

process.exitCode = await run(process.argv.slice(2));
