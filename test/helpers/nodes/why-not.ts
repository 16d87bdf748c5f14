/** Checks for programs and packages on this machine. */
import { spawnSync } from "node:child_process";

/** Returns the reason that a command fails here; undefined if it succeeds. */
export function whyNot(program: string, ...args: readonly string[]): string | undefined {
  const { status, error, stderr } = spawnSync(program, args, { encoding: "utf8", timeout: 20_000 });
  if (error !== undefined) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? `${program} is not installed` : error.message;
  }
  return status === 0 ? undefined : `${program}: ${stderr.trim().split("\n").at(-1)}`;
}

/** Returns a message with the missing system packages; undefined if none is missing. */
export function whyNotInstalled(packages: Readonly<Record<string, boolean>>): string | undefined {
  const missing = Object.keys(packages).filter((name) => packages[name] === false);
  return missing.length === 0 ? undefined : `${missing.join(", ")} not installed`;
}

/** Returns true if a command runs here and succeeds. */
export function succeeds(command: string, ...args: readonly string[]): boolean {
  return whyNot(command, ...args) === undefined;
}

/** Returns true if the shell finds a program. */
export function isInstalled(program: string): boolean {
  return succeeds("sh", "-c", 'command -v "$0"', program);
}
