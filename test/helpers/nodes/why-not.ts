/** What is missing on this machine, and why. */
import { spawnSync } from "node:child_process";

/** Why a program cannot be used here; undefined where it runs and succeeds. */
export function whyNot(program: string, ...args: readonly string[]): string | undefined {
  const { status, error, stderr } = spawnSync(program, args, { encoding: "utf8", timeout: 20_000 });
  if (error !== undefined) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? `${program} is not installed` : error.message;
  }
  return status === 0 ? undefined : `${program}: ${stderr.trim().split("\n").at(-1)}`;
}

/** Why packages of the system are missed: those whose program or library is not there. */
export function whyNotInstalled(packages: Readonly<Record<string, boolean>>): string | undefined {
  const missing = Object.keys(packages).filter((name) => packages[name] === false);
  return missing.length === 0 ? undefined : `${missing.join(", ")} not installed`;
}

/** Whether a command can be run here and succeeds. */
export function succeeds(command: string, ...args: readonly string[]): boolean {
  return whyNot(command, ...args) === undefined;
}

/** Whether the shell finds a program. */
export function isInstalled(program: string): boolean {
  return succeeds("sh", "-c", 'command -v "$0"', program);
}
