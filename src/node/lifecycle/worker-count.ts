/** How many processes serve the public port beside the node's own. */
import { availableParallelism } from "node:os";
import type { Config } from "../../config/config.js";

/** 0 where the node's own process serves it. */
export function countWorkers({ workers }: Pick<Config, "workers">): number {
  const count = workers === "auto" ? availableParallelism() : workers;
  return count === 1 ? 0 : count;
}
