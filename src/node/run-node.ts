/** Runs a node until it is stopped. A standby becomes the writer when the previous writer is gone. */
import { StartAborted } from "../base/errors/start-error.js";
import type { Config } from "../config/config.js";
import { type RunningNode, startNode, type StartOptions } from "./node.js";

/** Options of a run besides those of a start. */
export interface RunOptions extends StartOptions {
  /** Called with each node that has booted: the first, and the writer that replaces a standby. */
  readonly onReady: (node: RunningNode) => void;
  /** Called with the error of a failed takeover, after which no node runs. */
  readonly onTakeoverFailed: (error: unknown) => void;
}

/**
 * Starts a node. When a standby acquires the writer lease, stops it and starts a writer on the same ports.
 *
 * @returns a function that stops the running node and any takeover in progress.
 * @throws the errors of `startNode`.
 */
export async function runNode(
  config: Config,
  { onReady, onTakeoverFailed, ...options }: RunOptions,
): Promise<() => Promise<void>> {
  const stopping = new AbortController();
  const first = await startNode(config, options);
  let node = first;
  onReady(first);

  async function takeOver(): Promise<void> {
    const lease = await first.takeoverLease;
    const writerConfig = { ...config, ...portsOf(first, config), role: "writer", portDrift: "deny" } as const;
    // Errors of the shutdown are in the log.
    await first.stop().catch(() => undefined);
    if (lease !== undefined && !stopping.signal.aborted) {
      node = await startNode(writerConfig, { ...options, acquiredLease: lease, signal: stopping.signal });
      onReady(node);
    }
  }

  const takeover = first.takeoverLease && takeOver();
  takeover?.catch((error: unknown) => {
    if (!(error instanceof StartAborted)) {
      onTakeoverFailed(error);
    }
  });
  return async () => {
    stopping.abort();
    await first.stop();
    await takeover?.catch(() => undefined);
    await node.stop();
  };
}

/** Returns the ports that a node has bound, for its successor; for each unbound port, the configured one. */
function portsOf({ subsystems, ports }: RunningNode, config: Config) {
  return {
    rpcPort: ports.rpc!,
    omniPort: ports.omni!,
    controlPort: ports.control ?? config.controlPort,
    metricsPort: subsystems.get("metrics").port ?? config.metricsPort,
    mcpPort: subsystems.get("mcp").port ?? config.mcpPort,
  };
}
