/** Runs programs of this machine and of npm packages. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Runs a program. Rejects with its output if it fails. */
export const run = promisify(execFile);

/** Returns the path of a program in an npm package, because npx is slow. */
export function packaged(name: string): string {
  return `node_modules/.bin/${name}`;
}
