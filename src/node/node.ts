/** Starts a node from a configuration, stops it, and changes its role: a standby takes over, a replaced writer stands by. */
import { isDatabaseCorruption, isDatabaseError } from "../base/errors/database-error-kind.js";
import { errorMessage } from "../base/errors/error-message.js";
import { StartAborted, StartError } from "../base/errors/start-error.js";
import { codename, version } from "../base/version.js";
import type { Config } from "../config/config.js";
import { explainError } from "../db/open.js";
import type { OverloadLimits } from "../edge/concurrency.js";
import type { ProcessErrors } from "../health/process-errors.js";
import { commentError } from "../rpc/describe/comments.js";
import { bootNode, type Booted } from "./boot.js";
import { bootSteps, createBootSteps } from "./lifecycle/boot-steps.js";
import { countWorkers, createNodeCore, type NodeCore } from "./lifecycle/core.js";
import { checkDescriptors } from "./lifecycle/descriptors.js";
import type { RoleChange, Succession } from "./lifecycle/role-change.js";

export type RunningNode = Readonly<ReturnType<typeof describeNode>>;

/** Default interval in milliseconds at which an authority that produces no block restates its latest block. */
const defaultStateHeadEveryMs = 30_000;

export interface StartOptions {
  /** Process errors, shared by all nodes in one process. */
  readonly processErrors: ProcessErrors;
  /** Limits above which the node rejects new requests. Default: the usual limits. */
  readonly overload?: OverloadLimits;
  /**
   * Interval in milliseconds at which an authority that produces no block states that its latest block is still the
   * latest. Default: 30,000.
   */
  readonly stateHeadEveryMs?: number;
  /** Signal that aborts the boot: the node stops the parts that have started and rejects the start. */
  readonly signal?: AbortSignal;
  /**
   * Called with a function that makes the node reload files that may have changed. The function may be called at any
   * time.
   */
  readonly onReload?: (reload: () => void) => void;
  /** Events that led to this start, if the node continues another node of this process. */
  readonly succession?: Succession;
}

/**
 * Starts a node and resolves when it has booted.
 *
 * @throws StartError if the node cannot start.
 * @throws StartAborted if the node was stopped during its start.
 */
export async function startNode(
  config: Config,
  {
    processErrors,
    overload,
    stateHeadEveryMs = defaultStateHeadEveryMs,
    signal,
    onReload,
    succession = {},
  }: StartOptions,
): Promise<RunningNode> {
  checkDescriptors();
  const stepCount = Object.keys(bootSteps).length;
  const core = createNodeCore({ config, processErrors, overload, stateHeadEveryMs, wake }, stepCount);
  const { lifecycle, shutdownHooks } = core;
  const steps = createBootSteps(core);
  const startShutdown = (): void => {
    if (!lifecycle.isStopping()) {
      lifecycle.stop();
      core.log.info({ public: true }, "Node is shutting down");
    }
  };
  const stop = async (): Promise<void> => {
    startShutdown();
    await shutdownHooks.run();
  };
  let booted: Booted | undefined;
  onReload?.(() => core.bus.emit("reloadRequested", undefined));
  signal?.addEventListener("abort", startShutdown);
  try {
    if (signal?.aborted === true) {
      startShutdown();
    }
    booted = await bootNode(core, steps, succession);
  } catch (error) {
    const isAborted = lifecycle.isStopping();
    // Errors of the shutdown are in the log; the caller needs the error that ended the start.
    await stop().catch(() => undefined);
    if (isAborted) {
      throw new StartAborted("The node was stopped while it started.", { cause: error });
    }
    throw toStartError(config, error);
  } finally {
    signal?.removeEventListener("abort", startShutdown);
  }
  core.bus.on("peerVerified", () => void wake());
  void wake();
  core.log.info({ public: true }, `Node ${version} "${codename}" is up${stateSuffix(core)}`);
  const problem = commentError();
  if (problem !== undefined) {
    core.warn("rpc", `API descriptions have no comments: ${problem}`);
  }
  return describeNode(core, booted, stop);

  /** Leaves dormancy if the node has booted and has a peer: runs the boot steps that were deferred. */
  async function wake(): Promise<void> {
    if (booted === undefined || !lifecycle.isDormant() || lifecycle.isStopping() || booted.network.book.isEmpty()) {
      return;
    }
    lifecycle.setDormant(false);
    core.log.info({ public: true }, "The node has a peer; its dormancy ends");
    await steps.runDeferred();
    if (!lifecycle.isStopping()) {
      core.log.info({ public: true }, "The node is awake");
    }
  }
}

/** Converts an error of the boot. A database outage, which any row may encounter, has an error message of its own. */
function toStartError({ databaseUrl }: Config, error: unknown): StartError {
  if (error instanceof StartError) {
    return error;
  }
  const isUnavailable = isDatabaseError(error) && !isDatabaseCorruption(error);
  const { message } = isUnavailable ? explainError(databaseUrl, error) : { message: errorMessage(error) };
  return new StartError(message, { cause: error });
}

/** Returns the suffix of the log line for a node that is up but not active; empty for an active node. */
function stateSuffix({ config, lifecycle }: Pick<NodeCore, "config" | "lifecycle">): string {
  if (config.role === "standby") {
    return ", standby";
  }
  return lifecycle.isDormant() ? ", dormant" : "";
}

function describeNode(
  core: Pick<NodeCore, "addresses" | "config" | "lifecycle" | "log" | "subsystems" | "warnings">,
  booted: Booted,
  stop: () => Promise<void>,
) {
  const { key, network, chain, rpcPort, application, omniPort, controlPort, roleChange } = booted;
  const { config, lifecycle, log, subsystems, warnings } = core;
  /** Returns the port of a subsystem that may be disabled or have failed. */
  const portOf = (name: "metrics" | "mcp"): Readonly<Record<string, number>> => {
    const { port } = subsystems.get(name);
    return port === undefined ? {} : { [name]: port };
  };
  const ports: Readonly<Record<string, number>> = {
    ...{ rpc: rpcPort, omni: omniPort },
    ...(controlPort !== undefined && { control: controlPort }),
    ...portOf("metrics"),
    ...portOf("mcp"),
  };
  return {
    /** URL of the RPC port as reached from this machine: scheme, host and port. */
    rpcUrl: core.addresses.rpcUrl,
    /** Public key of the node: 0x and 64 lower-case hex digits. */
    publicKey: key.publicKey,
    /** Bound ports by subsystem name. */
    ports,
    /** True if the node knew no peers at the end of its boot. */
    dormant: lifecycle.isDormant(),
    version,
    versionName: codename,
    /** Messages that the operator should read. */
    warnings,
    /** Registry of subsystems. The code that runs a subsystem reports its state here. */
    subsystems,
    mainLoop: network.mainLoop,
    /** Chain of the node. External block producers submit their blocks here. */
    chain,
    /** Returns the progress of the block sync while the node catches up with its peers; otherwise undefined. */
    syncProgress: () => network.syncProgress(),
    /**
     * Resolves once the node needs another role: a standby that has the lease, or a writer that was replaced. Resolves to
     * undefined if the node stops before that. Undefined for a reader.
     */
    roleChange,
    role: config.role,
    /** Number of processes that serve the public port in addition to the node's own. */
    workers: countWorkers(config),
    /** Returns the Express application, which responds to requests of other HTTP/1.1 servers as the RPC port would. */
    application,
    log,
    /**
     * Makes the node unready, and resolves after the delay of `--shutdown-delay`, or once `hurry` aborts. Until then the
     * node serves everything.
     */
    async announceStop(hurry?: AbortSignal): Promise<void> {
      const { shutdownDelayMs } = config;
      if (shutdownDelayMs > 0 && !lifecycle.isStopAnnounced()) {
        log.info({ public: true }, `Node is not ready any more, and shuts down in ${shutdownDelayMs / 1_000} s`);
      }
      await lifecycle.announceStop(shutdownDelayMs, hurry);
    },
    /**
     * Finishes requests in progress, for up to 10 s, and stops every part, even if one of them fails. All callers wait
     * for the same shutdown.
     *
     * @throws StopError that names the parts that could not be stopped.
     */
    stop,
  };
}

export interface RunOptions extends StartOptions {
  /** Called with each node that has booted: the first, and each that continues it in another role. */
  readonly onReady: (node: RunningNode) => void;
  /** Called with the error of a failed change of role, after which no node runs. */
  readonly onRoleChangeFailed: (error: unknown) => void;
}

/**
 * Starts a node. Whenever its role changes, stops it and starts a node with the new role on the same ports.
 *
 * @returns functions that announce the stop of the running node, and that stop it and any change in progress.
 * @throws the errors of `startNode`.
 */
export async function runNode(
  config: Config,
  { onReady, onRoleChangeFailed, ...options }: RunOptions,
): Promise<Pick<RunningNode, "announceStop" | "stop">> {
  const stopping = new AbortController();
  const { signal } = stopping;
  let node = await startNode(config, options);
  onReady(node);

  async function change({ role, ...succession }: RoleChange): Promise<void> {
    const changed = { ...config, ...portsOf(node, config), role, portDrift: "deny" } as const;
    // Errors of the shutdown are in the log.
    await node.stop().catch(() => undefined);
    if (!signal.aborted) {
      node = await startNode(changed, { ...options, succession, signal });
      onReady(node);
    }
  }

  async function followRole(): Promise<void> {
    for (let next = await node.roleChange; next !== undefined && !signal.aborted; next = await node.roleChange) {
      await change(next);
    }
  }

  const changes = followRole().catch((error: unknown) => {
    if (!(error instanceof StartAborted)) {
      onRoleChangeFailed(error);
    }
  });
  return {
    async announceStop(hurry) {
      // A node that is about to stop takes no other role.
      stopping.abort();
      await node.announceStop(hurry);
    },
    async stop() {
      stopping.abort();
      await node.stop();
      await changes;
      await node.stop();
    },
  };
}

/** Returns the ports that a node has bound, for its successor; for each unbound port, the configured one. */
function portsOf({ ports }: RunningNode, config: Config) {
  return {
    rpcPort: ports.rpc!,
    omniPort: ports.omni!,
    controlPort: ports.control ?? config.controlPort,
    metricsPort: ports.metrics ?? config.metricsPort,
    mcpPort: ports.mcp ?? config.mcpPort,
  };
}
