/** Which processes this one can see: a process number says something about those alone. */
import { readFile, readlink } from "node:fs/promises";
import { hostname } from "node:os";

/**
 * A name of the machine, as far as processes of it have one row of numbers: of a container, its own. It is another one
 * after the machine was started anew, where the system tells.
 */
export async function nameMachine(): Promise<string> {
  try {
    const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8");
    return `${boot.trim()} ${await readlink("/proc/self/ns/pid")}`;
  } catch {
    return hostname();
  }
}

/** Whether there is no process of this machine with that number. */
export function isProcessGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}
