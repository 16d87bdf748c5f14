import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Bytes in use by this process once what is not in use is gone. */
export function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}
