/** Programs of this machine and of the packages, run to their end. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Runs a program; rejects with its output when it fails. */
export const run = promisify(execFile);

/** A program of the packages; npx takes longer to find it than it takes to run. */
export function packaged(name: string): string {
  return `node_modules/.bin/${name}`;
}
