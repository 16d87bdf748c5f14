import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Returns the heap size of this process after a garbage collection, in bytes. */
export function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}
