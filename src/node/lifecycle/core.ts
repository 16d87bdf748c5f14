/**
 * Core of a node, shared by all its modules: configuration, log, subsystem registry, event bus, lifecycle and shutdown
 * hooks.
 */
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { createBus } from "./bus.js";
import { createCorruptionMonitor, type CorruptionMonitor } from "../../base/errors/corruption.js";
import { createLogging, type Logger, type Logging } from "../../base/logging/log.js";
import type { Config } from "../../config/config.js";
import type { OverloadLimits } from "../../edge/overload.js";
import { type BootProgress, createBootProgress } from "../../health/boot-progress.js";
import type { ProcessErrors } from "../../health/process-errors.js";
import { createSubsystems, type SubsystemName, type Subsystems, type SubsystemState } from "../../health/subsystems.js";
import { createNodeClock, type NodeClock } from "./clock.js";
import type { NodeBus, NodeEvents } from "./events.js";
import { createErrorThrottle } from "../../base/logging/error-throttle.js";
import { createLifecycle, type Lifecycle } from "./lifecycle.js";
import { divideMemory, findMemory, type MemoryLimits } from "./memory-budget.js";
import { countWorkers } from "./worker-count.js";
import { createShutdownHooks, type OnShutdown, type ShutdownHooks } from "./shutdown-hooks.js";

export interface NodeCore {
  readonly config: Config;
  readonly log: Logger;
  readonly logLines: Omit<Logging, "log">;
  /** Logs a message for the operator, and adds it to the warnings that the terminal shows. */
  readonly warn: (subsystem: SubsystemName, message: string) => void;
  readonly warnings: readonly string[];
  readonly subsystems: Subsystems;
  readonly progress: BootProgress;
  readonly processErrors: ProcessErrors;
  /** Limits above which the node rejects new requests; undefined selects the defaults. */
  readonly overload: OverloadLimits | undefined;
  /**
   * Interval in milliseconds at which an authority that produces no block states that its latest block is still the
   * latest.
   */
  readonly stateHeadEveryMs: number;
  /** Limits on memory use of this process. */
  readonly memory: MemoryLimits;
  readonly bus: NodeBus;
  /** Monitor of corruption: records of the database that differ from what was stored. */
  readonly corruption: CorruptionMonitor;
  readonly lifecycle: Lifecycle;
  readonly clock: NodeClock;
  readonly onShutdown: OnShutdown;
  readonly shutdownHooks: ShutdownHooks;
  /** URLs at which this node is reached; each is empty until its port is bound. */
  readonly addresses: Addresses;
  /** Logs an error whose details the client does not receive, and checks it for corruption. */
  readonly onInternalError: (error: unknown, requestId: string) => void;
  /** Runs the boot steps that were deferred because the node was dormant, once the node has a peer. */
  readonly wake: () => Promise<void>;
}

/** URLs of a node: scheme, host and port. */
export interface Addresses {
  /** URL for clients on this machine. */
  rpcUrl: string;
  /** URL for clients on any machine. */
  connectionString: string;
  /** URL for other nodes. */
  omniUrl: string;
}

/**
 * Builds the core of a node.
 *
 * @param steps number of boot steps, as `/health` counts them.
 * @param logging log of the node. Default: a new log as the configuration describes it.
 */
export function createNodeCore(
  options: Pick<NodeCore, "config" | "processErrors" | "overload" | "stateHeadEveryMs" | "wake">,
  steps: number,
  logging?: Logging,
): NodeCore {
  const { config } = options;
  const { log, ...logLines } = logging ?? createLogging({ level: config.logLevel, json: config.json });
  const warnings: string[] = [];
  const subsystems = createSubsystems(Date.now, (name, state) => logTransition(log, name, state));
  for (const [name, requestedPort] of requestedPorts(config)) {
    subsystems.set(name, { requestedPort });
  }
  const throttle = createErrorThrottle({ log, fields: { subsystem: "rpc" }, message: "A request failed" });
  const bus = createBus<NodeEvents>((event, error) => log.error({ err: error }, `A listener to ${event} failed`));
  const corruption = createCorruptionMonitor((message) => bus.emit("corruptionChanged", { message }));
  const shutdownHooks = createShutdownHooks((name, error) => log.error({ err: error }, `${name} could not be stopped`));
  return {
    ...options,
    log,
    logLines,
    warn(subsystem, message) {
      warnings.push(message);
      log.warn({ subsystem }, message);
    },
    warnings,
    subsystems,
    progress: createBootProgress(steps, subsystems),
    // Each worker may use as much memory as the node's own process.
    memory: divideMemory(findMemory(config.memoryMib, countWorkers(config) + 1)),
    bus,
    corruption,
    lifecycle: createLifecycle(),
    clock: createNodeClock(),
    onShutdown: shutdownHooks.add,
    shutdownHooks,
    addresses: { rpcUrl: "", connectionString: "", omniUrl: "" },
    onInternalError(error, requestId) {
      corruption.recordRequestError(error);
      throttle.failed(error, { requestId });
    },
  };
}

/** Lists the ports that the configuration requests; 0 requests any free port. A disabled subsystem requests none. */
function requestedPorts(config: Config): readonly (readonly [SubsystemName, number])[] {
  return [
    ["rpc", config.rpcPort],
    ["omni", config.omniPort],
    ...(config.metricsEnabled ? [["metrics", config.metricsPort] as const] : []),
    ...(config.mcpEnabled ? [["mcp", config.mcpPort] as const] : []),
  ];
}

/** Logs a new status of a subsystem: a failure as an error, readiness as information, any other for debugging. */
function logTransition(log: Logger, name: SubsystemName, { status, lastError, extra }: SubsystemState): void {
  const statusName = SubsystemStatus[status].toLowerCase();
  if (status === SubsystemStatus.FAILED) {
    log.error({ subsystem: name }, `${name} ${statusName}: ${lastError?.message ?? ""}`);
  } else {
    const reason = extra?.reason === undefined ? "" : `: ${extra.reason}`;
    log[status === SubsystemStatus.READY ? "info" : "debug"]({ subsystem: name }, `${name} ${statusName}${reason}`);
  }
}
