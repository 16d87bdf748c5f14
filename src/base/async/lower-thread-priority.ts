/** Lowers the priority of long-running threads, so that threads that serve requests run first. */
import { constants, setPriority } from "node:os";

/**
 * Lowers the priority of the calling thread. Does nothing except on Linux, where priorities apply to single threads.
 */
export function lowerThreadPriority(): void {
  if (process.platform === "linux") {
    try {
      // On Linux, process id 0 means the calling thread.
      setPriority(0, constants.priority.PRIORITY_BELOW_NORMAL);
    } catch {
      // Without permission the thread runs at normal priority.
    }
  }
}
