/** Reports of a disk that cannot be read, for the parts of a node. */
import type { Database } from "../../db/queries/database.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Time in milliseconds before the first report in which a read may already have failed. */
const marginMs = 10_000;

/**
 * Publishes the state of the disks of a database. Once a disk can be read again, withdraws the corruption that was
 * recorded meanwhile: failed reads may have caused it, and another read or scan finds it again if it is real.
 */
export function monitorDisks(
  { bus, corruption }: Pick<NodeCore, "bus" | "corruption">,
  database: Pick<Database, "mempool" | "onDiskChange">,
): void {
  for (const [part, { onDiskChange }] of [["chain", database] as const, ["mempool", database.mempool] as const]) {
    let sinceMs = 0;
    onDiskChange((problem) => {
      if (problem === undefined) {
        corruption.withdraw(sinceMs - marginMs);
      } else {
        sinceMs = performance.now();
      }
      bus.emit("diskChanged", { part, problem });
    });
  }
}
