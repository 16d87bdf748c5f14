/** History of the node over the last day, for the status page. It gets a new point each minute. */
import { HealthStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { startPeriodicTask } from "../../base/async/periodic-task.js";
import { createErrorThrottle } from "../../base/logging/error-throttle.js";
import type { Listings } from "../../chain/blocks/listing-store.js";
import type { Chain } from "../../chain/chain.js";
import { engineNameOf } from "../../db/open.js";
import { createHistory, type HistoryPoint } from "../../metrics/history.js";
import type { MerkleTree } from "../../zk/merkle-tree.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { NodeHealth } from "./health.js";
import type { NodeNetwork } from "../network/network.js";

const historyEveryMs = 60_000;
/** Delay in milliseconds before the first point. Most nodes have booted by then, so the point is meaningful. */
const firstAfterMs = 2_000;
/** Limit on the blocks between two points whose transactions are counted: more come only while the node catches up. */
const maxCountedBlocks = 200;

interface HistorySources {
  readonly health: Pick<NodeHealth, "takeSnapshot">;
  readonly chain: Pick<Chain, "head">;
  readonly store: Pick<Listings, "recentBlocks">;
  readonly tree: Pick<MerkleTree, "root">;
  readonly network: Pick<NodeNetwork, "peerBlock" | "countPeers">;
}

/** Data that only the status page shows, in addition to data from the API. */
export type NodeHistory = ReturnType<typeof createNodeHistory>;

/** Creates the history of a node or of a worker, without points. */
export function createNodeHistory({ config }: Pick<NodeCore, "config">) {
  // The location and the credentials of the database stay private.
  return { history: createHistory(), everyMs: historyEveryMs, database: engineNameOf(config.databaseUrl) };
}

export function recordHistory(
  { bus, log, onShutdown }: Pick<NodeCore, "bus" | "log" | "onShutdown">,
  { history }: NodeHistory,
  deps: HistorySources,
): void {
  const throttle = createErrorThrottle({
    log,
    level: "warn",
    fields: { subsystem: "metrics" },
    message: "A point of the history could not be recorded",
  });
  let before: bigint | undefined;
  const timer = startPeriodicTask(
    async () => {
      const head = deps.chain.head()?.number;
      const point = await samplePoint(deps, before, head);
      before = head;
      history.add(point);
      bus.emit("historyTaken", point);
    },
    historyEveryMs,
    (error) => throttle.failed(error),
    firstAfterMs,
  );
  onShutdown("the history", () => timer.stop());
}

/** @param before latest block at the point before; undefined for the first point. */
async function samplePoint(
  { health, store, tree, network }: HistorySources,
  before: bigint | undefined,
  head: bigint | undefined,
): Promise<HistoryPoint> {
  const [{ status = HealthStatus.UNSPECIFIED, mempoolSize }, transactions, commitments] = await Promise.all([
    health.takeSnapshot(),
    // Null without a database, while the other values are still known.
    countTransactions(store, before, head).catch(() => null),
    Promise.resolve(tree.root()).then(
      ({ leafCount }) => leafCount,
      () => null,
    ),
  ]);
  const peerBlock = network.peerBlock();
  return {
    atMs: Date.now(),
    status: HealthStatus[status].toLowerCase(),
    block: head === undefined ? null : Number(head),
    behind: head === undefined || peerBlock === undefined ? null : Math.max(0, Number(peerBlock - head)),
    pending: mempoolSize ?? null,
    ...{ transactions, commitments },
    online: network.countPeers().online,
  };
}

/** Counts the transactions of the blocks between two points; null if these are too many, or the first is not known. */
async function countTransactions(
  store: Pick<Listings, "recentBlocks">,
  before: bigint | undefined,
  head: bigint | undefined,
): Promise<number | null> {
  if (before === undefined || head === undefined || head - before > maxCountedBlocks || head < before) {
    return null;
  }
  const blocks = head === before ? [] : await store.recentBlocks(head + 1n, Number(head - before));
  return blocks.reduce((sum, { transactionCount = 0 }) => sum + transactionCount, 0);
}
