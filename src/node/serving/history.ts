/** History of the node over the last day, for the status page. It gets a new point each minute. */
import { HealthStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { startPeriodicTask } from "../../base/async/periodic-task.js";
import { createErrorThrottle } from "../../base/logging/error-throttle.js";
import type { Chain } from "../../chain/chain.js";
import { engineNameOf } from "../../db/open.js";
import { createHistory, type History, type HistoryPoint } from "../../metrics/history.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { NodeHealth } from "./health.js";
import type { NodeNetwork } from "../network/network.js";

const historyEveryMs = 60_000;
/** Delay in milliseconds before the first point. Most nodes have booted by then, so the point is meaningful. */
const firstAfterMs = 2_000;

/** Dependencies of the history besides the core. */
export interface NodeHistoryDeps {
  readonly health: Pick<NodeHealth, "takeSnapshot">;
  readonly chain: Pick<Chain, "head">;
  readonly network: Pick<NodeNetwork, "peerBlock" | "countPeers">;
}

/** Data that only the status page shows, in addition to data from the API. */
export interface NodeHistory {
  readonly history: History;
  readonly everyMs: number;
  /** Name of the database engine. The location and the credentials of the database stay private. */
  readonly database: string;
}

/** Creates the history of a node or of a worker, without points. */
export function createNodeHistory({ config }: Pick<NodeCore, "config">): NodeHistory {
  return { history: createHistory(), everyMs: historyEveryMs, database: engineNameOf(config.databaseUrl) };
}

/** Adds points to the history until the node stops. */
export function recordHistory(
  { bus, log, onShutdown }: Pick<NodeCore, "bus" | "log" | "onShutdown">,
  { history }: NodeHistory,
  deps: NodeHistoryDeps,
): void {
  const throttle = createErrorThrottle({
    log,
    level: "warn",
    fields: { subsystem: "metrics" },
    message: "A point of the history could not be recorded",
  });
  const timer = startPeriodicTask(
    async () => {
      const point = await samplePoint(deps);
      history.add(point);
      bus.emit("historyTaken", point);
    },
    historyEveryMs,
    (error) => throttle.failed(error),
    firstAfterMs,
  );
  onShutdown("the history", () => timer.stop());
}

async function samplePoint({ health, chain, network }: NodeHistoryDeps): Promise<HistoryPoint> {
  const { status = HealthStatus.UNSPECIFIED, mempoolSize } = await health.takeSnapshot();
  const [head, peerBlock] = [chain.head()?.number, network.peerBlock()];
  return {
    atMs: Date.now(),
    status: HealthStatus[status].toLowerCase(),
    block: head === undefined ? null : Number(head),
    behind: head === undefined || peerBlock === undefined ? null : Math.max(0, Number(peerBlock - head)),
    pending: mempoolSize ?? null,
    online: network.countPeers().online,
  };
}
