/** A node until it is told to stop; one that stands by becomes the one that writes when that is gone. */
import { StartAborted } from "../base/errors/start-error.js";
import type { Config } from "../config/config.js";
import { type RunningNode, startNode, type StartOptions } from "./node.js";

/** What a run is given beside the options of a start. */
export interface RunOptions extends StartOptions {
  /** Hears of each node that has booted: the first, and the one that takes over. */
  readonly onReady: (node: RunningNode) => void;
  /** Hears why there is no node any more, though nobody stopped it: taking over has failed. */
  readonly onEnd: (error: unknown) => void;
}

/**
 * Starts a node, and when it has stood by and its turn comes, one that writes, on the same ports.
 *
 * @returns what stops the one that runs, and what is about to.
 * @throws what `startNode` throws.
 */
export async function runNode(
  config: Config,
  { onReady, onEnd, ...options }: RunOptions,
): Promise<() => Promise<void>> {
  const ending = new AbortController();
  const first = await startNode(config, options);
  let node = first;
  onReady(first);

  async function takeOver(): Promise<void> {
    const taken = await first.turn;
    const next = { ...config, ...portsOf(first, config), role: "writer", portDrift: "deny" } as const;
    // What could not be ended is in the log.
    await first.stop().catch(() => undefined);
    if (taken !== undefined && !ending.signal.aborted) {
      node = await startNode(next, { ...options, taken, signal: ending.signal });
      onReady(node);
    }
  }

  const takenOver = first.turn && takeOver();
  takenOver?.catch((error: unknown) => {
    if (!(error instanceof StartAborted)) {
      onEnd(error);
    }
  });
  return async () => {
    ending.abort();
    await first.stop();
    await takenOver?.catch(() => undefined);
    await node.stop();
  };
}

/** The ports that a node has bound, for the next one; of what it has not, those that were asked for. */
function portsOf({ subsystems, ports }: RunningNode, config: Config) {
  return {
    rpcPort: ports.rpc!,
    omniPort: ports.omni!,
    controlPort: ports.control ?? config.controlPort,
    metricsPort: subsystems.get("metrics").port ?? config.metricsPort,
    mcpPort: subsystems.get("mcp").port ?? config.mcpPort,
  };
}
