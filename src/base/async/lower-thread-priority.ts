/** Threads that work long give way to those that answer. */
import { constants, setPriority } from "node:os";

/** Lets the scheduler prefer other threads to the calling one, where a priority can be a thread's own: on Linux. */
export function lowerThreadPriority(): void {
  if (process.platform === "linux") {
    try {
      // Of the thread that calls it.
      setPriority(0, constants.priority.PRIORITY_BELOW_NORMAL);
    } catch {
      // Not allowed here: it works all the same.
    }
  }
}
