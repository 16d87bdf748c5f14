/**
 * Core of a node: what most of its parts share. A part lists the members that it uses in the type of its first
 * parameter.
 */
import { availableParallelism } from "node:os";
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { createCorruptionMonitor } from "../../base/errors/corruption.js";
import { createErrorThrottle } from "../../base/logging/error-throttle.js";
import { createLogging, type Logger, type Logging } from "../../base/logging/log.js";
import type { Config } from "../../config/config.js";
import type { OverloadLimits } from "../../edge/concurrency.js";
import { createBootProgress } from "../../health/boot-progress.js";
import type { ProcessErrors } from "../../health/process-errors.js";
import { createSubsystems, type SubsystemName, type SubsystemState } from "../../health/subsystems.js";
import { createNodeClock } from "./clock.js";
import { createBus, type NodeEvents } from "./events.js";
import { createLifecycle, createShutdownHooks } from "./lifecycle.js";
import { divideDescriptors } from "./descriptors.js";
import { divideMemory, findMemory } from "./memory-budget.js";

interface CoreOptions {
  readonly config: Config;
  readonly processErrors: ProcessErrors;
  /** Limits above which the node rejects new requests; undefined selects the defaults. */
  readonly overload: OverloadLimits | undefined;
  /**
   * Interval in milliseconds at which an authority that produces no block states that its latest block is still the
   * latest.
   */
  readonly stateHeadEveryMs: number;
  /** Runs the boot steps that were deferred because the node was dormant, once the node has a peer. */
  readonly wake: () => Promise<void>;
}

export type NodeCore = Readonly<ReturnType<typeof createNodeCore>>;

/**
 * Builds the core of a node.
 *
 * @param steps number of boot steps, as `/health` counts them.
 * @param logging log of the node. Default: a new log as the configuration describes it.
 */
export function createNodeCore(options: CoreOptions, steps: number, logging?: Logging) {
  const { config } = options;
  const { log, ...logLines } = logging ?? createLogging({ level: config.logLevel, json: config.json });
  const warnings: string[] = [];
  const subsystems = createSubsystems(Date.now, (name, state) => logTransition(log, name, state));
  for (const [name, requestedPort] of requestedPorts(config)) {
    subsystems.set(name, { requestedPort });
  }
  const throttle = createErrorThrottle({ log, fields: { subsystem: "rpc" }, message: "A request failed" });
  const bus = createBus<NodeEvents>((event, error) => log.error({ err: error }, `A listener to ${event} failed`));
  /** Records of the database that differ from what was stored. */
  const corruption = createCorruptionMonitor((message) => bus.emit("corruptionChanged", { message }));
  const shutdownHooks = createShutdownHooks((name, error) => log.error({ err: error }, `${name} could not be stopped`));
  return {
    ...options,
    log,
    logLines,
    /** Logs a message for the operator, and adds it to the warnings that the terminal shows. */
    warn(subsystem: SubsystemName, message: string): void {
      warnings.push(message);
      log.warn({ subsystem }, message);
    },
    warnings: warnings as readonly string[],
    subsystems,
    progress: createBootProgress(steps, subsystems),
    /** Limits on memory use of this process. Each worker may use as much memory as the node's own process. */
    memory: divideMemory(findMemory(config.memoryMib, countWorkers(config) + 1)),
    /** Limits on the connections of the ports of this process, by its limit on open files. */
    connections: divideDescriptors(),
    bus,
    corruption,
    lifecycle: createLifecycle(),
    clock: createNodeClock(),
    onShutdown: shutdownHooks.add,
    shutdownHooks,
    /** URLs at which clients on this machine, clients anywhere and nodes reach this node; empty until a port is bound. */
    addresses: { rpcUrl: "", connectionString: "", omniUrl: "" },
    /** Logs an error whose details the client does not receive, and checks it for corruption. */
    onInternalError(error: unknown, requestId: string): void {
      corruption.recordRequestError(error);
      throttle.failed(error, { requestId });
    },
  };
}

/** Counts the worker processes; 0 if the node's own process serves the public port, as with a setting of 1. */
export function countWorkers({ workers }: Pick<Config, "workers">): number {
  const count = workers === "auto" ? availableParallelism() : workers;
  return count === 1 ? 0 : count;
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
