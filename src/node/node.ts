/** Starts a node from a configuration, and stops it. */
import { isDatabaseCorruption, isDatabaseError } from "../base/errors/database-error-kind.js";
import { errorMessage } from "../base/errors/error-message.js";
import type { Logger } from "../base/logging/log.js";
import { StartAborted, StartError } from "../base/errors/start-error.js";
import { codename, version } from "../base/version.js";
import type { Chain } from "../chain/chain.js";
import type { HeldLease } from "../chain/writer/writer-lease-store.js";
import type { Config } from "../config/config.js";
import { explainError } from "../db/open.js";
import type { NodeApplication } from "../express/application.js";
import type { OverloadLimits } from "../edge/concurrency.js";
import type { ProcessErrors } from "../health/process-errors.js";
import type { Subsystems } from "../health/subsystems.js";
import type { MainLoop } from "../peers/sync/main-loop.js";
import type { SyncProgress } from "../peers/sync/sync.js";
import { commentError } from "../rpc/describe/comments.js";
import { bootNode, type Booted } from "./boot.js";
import { bootSteps, createBootSteps } from "./lifecycle/boot-steps.js";
import { countWorkers, createNodeCore, type NodeCore } from "./lifecycle/core.js";

/** Node that has booted. */
export interface RunningNode {
  /** URL of the RPC port as reached from this machine: scheme, host and port. */
  readonly rpcUrl: string;
  /** Public key of the node: 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  /** Bound ports by subsystem name. */
  readonly ports: Readonly<Record<string, number>>;
  /** True if the node knew no peers at the end of its boot. */
  readonly dormant: boolean;
  readonly version: string;
  readonly versionName: string;
  /** Messages that the operator should read. */
  readonly warnings: readonly string[];
  /** Registry of subsystems. The code that runs a subsystem reports its state here. */
  readonly subsystems: Subsystems;
  readonly mainLoop: MainLoop;
  /** Chain of the node. External block producers submit their blocks here. */
  readonly chain: Chain;
  /** Returns the progress of the block sync while the node catches up with its peers; otherwise undefined. */
  syncProgress(): SyncProgress | undefined;
  /**
   * Writer lease that a standby acquires when it takes over; undefined if it stops before that. Set only on a standby.
   */
  readonly takeoverLease: Promise<HeldLease | undefined> | undefined;
  readonly role: Config["role"];
  /** Number of processes that serve the public port in addition to the node's own. */
  readonly workers: number;
  /** Returns the Express application, which responds to requests of other HTTP/1.1 servers as the RPC port would. */
  readonly application: () => Promise<NodeApplication>;
  readonly log: Logger;
  /**
   * Finishes requests in progress, for up to 10 s, and stops every part, even if one of them fails. All callers wait
   * for the same shutdown.
   *
   * @throws StopError that names the parts that could not be stopped.
   */
  stop(): Promise<void>;
}

/** Default interval in milliseconds at which an authority that produces no block restates its latest block. */
const defaultStateHeadEveryMs = 30_000;

/** Options of a start besides the configuration. */
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
  /** Writer lease that was acquired for this node in advance; without it a writer acquires one itself. */
  readonly acquiredLease?: HeldLease;
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
    acquiredLease,
  }: StartOptions,
): Promise<RunningNode> {
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
    booted = await bootNode(core, steps, acquiredLease);
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
): RunningNode {
  const { key, network, chain, rpcPort, application, omniPort, controlPort, takeoverLease } = booted;
  return {
    rpcUrl: core.addresses.rpcUrl,
    publicKey: key.publicKey,
    ports: { rpc: rpcPort, omni: omniPort, ...(controlPort !== undefined && { control: controlPort }) },
    dormant: core.lifecycle.isDormant(),
    version,
    versionName: codename,
    warnings: core.warnings,
    subsystems: core.subsystems,
    mainLoop: network.mainLoop,
    chain,
    syncProgress: () => network.syncProgress(),
    takeoverLease,
    role: core.config.role,
    workers: countWorkers(core.config),
    application,
    log: core.log,
    stop,
  };
}
