/** Identification of the machine: process IDs are comparable within one PID namespace only. */
import { readFile, readlink } from "node:fs/promises";
import { hostname } from "node:os";

/**
 * Returns a name of the PID namespace; each container has its own. The name changes after a reboot if the system
 * exposes a boot ID, otherwise it is the host name.
 */
export async function machineId(): Promise<string> {
  try {
    const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8");
    return `${boot.trim()} ${await readlink("/proc/self/ns/pid")}`;
  } catch {
    return hostname();
  }
}

/** Returns true if this machine has no process with that ID. */
export function isProcessGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}
