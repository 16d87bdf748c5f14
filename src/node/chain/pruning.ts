/** Removes the transactions of old blocks, 16 blocks at a time. The headers stay. */
import { createErrorThrottle } from "../../base/logging/error-throttle.js";
import type { WritableChain } from "../../chain/chain.js";
import type { Fence } from "../../chain/writer/fence-store.js";
import { pruneBlocks } from "../../chain/blocks/header-store.js";
import type { Database } from "../../db/queries/database.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Number of blocks whose transactions are removed in one database transaction. */
const portionBlocks = 16n;

export interface PruningDeps {
  readonly database: Database;
  readonly fence: Fence;
  readonly chain: WritableChain;
}

/**
 * Removes the transactions of old blocks now and after each new block. Does nothing if the configuration retains all
 * blocks.
 */
export function startPruning(
  { config, bus, log, onShutdown }: Pick<NodeCore, "bus" | "config" | "log" | "onShutdown">,
  deps: PruningDeps,
): void {
  const { database, fence, chain } = deps;
  const retained = BigInt(config.retainBlocks);
  if (retained === 0n) {
    return;
  }
  const throttle = createErrorThrottle({
    log,
    level: "warn",
    fields: { subsystem: "chain" },
    message: "Transactions of old blocks could not be removed; retrying",
    recoveryMessage: "Transactions of old blocks are removed again",
  });
  let isStopped = false;
  let running: Promise<void> | undefined;

  async function prune(): Promise<void> {
    for (;;) {
      const { number = 0n, lowestBlock = 1n } = chain.head() ?? {};
      const next = lowestBlock + portionBlocks;
      if (isStopped || number - next + 1n < retained) {
        return;
      }
      await database.transaction((db) => fence.blocks(db, () => pruneBlocks(db, next)));
      chain.setLowest(next);
      throttle.succeeded();
    }
  }

  function check(): void {
    running ??= prune()
      .catch((error: unknown) => throttle.failed(error))
      .finally(() => {
        running = undefined;
      });
  }

  bus.on("blockApplied", check);
  onShutdown("the removal of old transactions", async () => {
    isStopped = true;
    await running;
  });
  check();
}
