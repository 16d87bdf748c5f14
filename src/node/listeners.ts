/** The part of the composition root that is about ports of their own: metrics for Prometheus, tools for assistants. */
import type { Config } from "../config/config.js";
import { bindPort, type BoundPort } from "../rpc/port/bind-port.js";
import type { Logger } from "../base/log.js";
import type { Metrics } from "../metrics/metrics.js";
import { createMetricsPage } from "../metrics/page.js";
import type { RpcListener } from "../rpc/port/listen.js";
import { createMcpPort, type McpPortParts } from "../rpc/server/rpc-server.js";
import { createSmallServer } from "../rpc/port/small-server.js";

/** What a port needs. */
export interface DoorParts {
  readonly config: Config;
  readonly log: Logger;
  /** Hears of the port that was bound. */
  readonly onBound: (bound: BoundPort) => void;
  /** Drains a listener, for as long as there is time when the node stops. */
  readonly drain: (listener: RpcListener) => Promise<void>;
  readonly onStop: (close: () => unknown) => void;
}

/** Resources of the tools' port, by the methods that give them. */
const resources = { "health.getHealth": "Health", "info.getInfo": "Node", "info.getGenesis": "Genesis" };

/** Serves the metrics. */
export async function serveMetrics(parts: DoorParts, metrics: Metrics): Promise<void> {
  const page = createMetricsPage(metrics, (error) =>
    parts.log.error({ subsystem: "metrics", err: error }, "The metrics could not be taken"),
  );
  await open(parts, createSmallServer(page), parts.config.metricsPort, "--metrics-port");
}

/** Serves the tools. */
export async function serveMcp(parts: DoorParts, given: Omit<McpPortParts, "resources">): Promise<void> {
  await open(parts, createMcpPort({ ...given, resources }), parts.config.mcpPort, "--mcp-port");
}

async function open(
  { config, onBound, drain, onStop }: DoorParts,
  listener: RpcListener,
  port: number,
  option: string,
): Promise<void> {
  onBound(await bindPort(listener, config, port, option));
  onStop(() => drain(listener));
}
