/** Number of processes that serve the public port in addition to the node's own process. */
import { availableParallelism } from "node:os";
import type { Config } from "../../config/config.js";

/** Counts the worker processes; 0 if the node's own process serves the public port, as with a setting of 1. */
export function countWorkers({ workers }: Pick<Config, "workers">): number {
  const count = workers === "auto" ? availableParallelism() : workers;
  return count === 1 ? 0 : count;
}
