/** A node, from its start to its end: configuration in, a running node out. */
import { isDatabaseCorruption, isDatabaseError } from "../base/errors/database-error-kind.js";
import { errorMessage } from "../base/errors/error-message.js";
import type { Logger } from "../base/logging/log.js";
import { StartAborted, StartError } from "../base/errors/start-error.js";
import { codename, version } from "../base/version.js";
import type { Chain } from "../chain/chain.js";
import type { HeldLease } from "../chain/writer/writer-lease-store.js";
import type { Config } from "../config/config.js";
import { explainTrouble } from "../db/open.js";
import type { NodeApplication } from "../express/application.js";
import type { OverloadBounds } from "../edge/overload.js";
import type { ProcessErrors } from "../health/process-errors.js";
import type { Subsystems } from "../health/subsystems.js";
import type { MainLoop } from "../peers/sync/main-loop.js";
import type { SyncProgress } from "../peers/sync/sync.js";
import { commentTrouble } from "../rpc/describe/comments.js";
import { bootTable, type Booted } from "./boot.js";
import { countSteps, createBoot } from "./lifecycle/boot-table.js";
import { createNodeCore, type NodeCore } from "./lifecycle/core.js";
import { countWorkers } from "./lifecycle/worker-count.js";

/** A node that booted. */
export interface RunningNode {
  /** Scheme, host and port of the RPC port, as reached from this machine. */
  readonly rpcUrl: string;
  /** 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  /** Bound port by subsystem name. */
  readonly ports: Readonly<Record<string, number>>;
  /** Whether it knew no peers when it had booted. */
  readonly dormant: boolean;
  readonly version: string;
  readonly versionName: string;
  /** Sentences that the operator should read. */
  readonly warnings: readonly string[];
  /** The registry of subsystems: whoever runs a subsystem reports its state here. */
  readonly subsystems: Subsystems;
  readonly mainLoop: MainLoop;
  /** The chain: whoever brings blocks hands them in here. */
  readonly chain: Chain;
  /** How far it is behind its peers, while it catches up. */
  syncProgress(): SyncProgress | undefined;
  /** Of a node that stands by: the lease, once it is its turn to write; undefined when it stops without. */
  readonly turn: Promise<HeldLease | undefined> | undefined;
  readonly role: Config["role"];
  /** Processes that serve its public port beside its own. */
  readonly workers: number;
  /** The application of Express that answers requests which other servers of HTTP/1.1 took, as the RPC port would. */
  readonly application: () => Promise<NodeApplication>;
  readonly log: Logger;
  /**
   * Finishes what is under way, for up to ten seconds, and ends every part, even when one of them fails. All callers wait
   * for the same end.
   *
   * @throws StopError that names the parts that could not be ended.
   */
  stop(): Promise<void>;
}

/** How often an authority that makes no block says so. */
const defaultStateHeadEveryMs = 30_000;

/** What a start is given beside the configuration. */
export interface StartOptions {
  /** What several nodes in one process have in common. */
  readonly processErrors: ProcessErrors;
  /** When new work is refused; the usual bounds when left out. */
  readonly overload?: OverloadBounds;
  /** How often an authority that makes no block says that there is no newer one, in milliseconds; 30,000 when left out. */
  readonly stateHeadEveryMs?: number;
  /** Ends the boot when it is aborted: what has begun is ended, and the start rejected. */
  readonly signal?: AbortSignal;
  /** Is given what makes the node read files again that may have changed; it may be called at any time from then on. */
  readonly onReload?: (reload: () => void) => void;
  /** A lease of the database that was taken for this node; without it a writer takes one itself. */
  readonly taken?: HeldLease;
}

/**
 * Starts a node and resolves when it has booted.
 *
 * @throws StartError when it cannot start, StartAborted when it was told to stop meanwhile.
 */
export async function startNode(
  config: Config,
  { processErrors, overload, stateHeadEveryMs = defaultStateHeadEveryMs, signal, onReload, taken }: StartOptions,
): Promise<RunningNode> {
  const core = createNodeCore({ config, processErrors, overload, stateHeadEveryMs, wake }, countSteps(bootTable.rows));
  const { lifecycle, progress, subsystems, shutdownHooks: stops } = core;
  const beginStop = (): void => {
    if (!lifecycle.isStopping()) {
      lifecycle.stop();
      core.log.info({ public: true }, "Node is shutting down");
    }
  };
  const stop = async (): Promise<void> => {
    beginStop();
    await stops.run();
  };
  const boot = createBoot({
    table: bootTable,
    progress,
    subsystems,
    isDormant: lifecycle.isDormant,
    signal: lifecycle.signal,
  });
  let booted: Booted | undefined;
  onReload?.(() => core.bus.emit("reloadAsked", undefined));
  signal?.addEventListener("abort", beginStop);
  try {
    if (signal?.aborted === true) {
      beginStop();
    }
    booted = await boot.run({ core, taken });
  } catch (error) {
    const isAborted = lifecycle.isStopping();
    // What cannot be ended is in the log; why the start ended is what its caller asks for.
    await stop().catch(() => undefined);
    if (isAborted) {
      throw new StartAborted("The node was told to stop while it started.", { cause: error });
    }
    throw toStartError(config, error);
  } finally {
    signal?.removeEventListener("abort", beginStop);
  }
  core.bus.on("peerVerified", () => void wake());
  void wake();
  core.log.info({ public: true }, `Node ${version} "${codename}" is up${stateOf(core)}`);
  const trouble = commentTrouble();
  if (trouble !== undefined) {
    core.warn("rpc", `Descriptions of the interface are without comments: ${trouble}`);
  }
  return describeNode(core, booted, stop);

  /** Leaves dormancy, where it has booted and has a peer: takes the steps that were left out. */
  async function wake(): Promise<void> {
    if (booted === undefined || !lifecycle.isDormant() || lifecycle.isStopping() || booted.network.book.isEmpty()) {
      return;
    }
    lifecycle.setDormant(false);
    core.log.info({ public: true }, "The node has a peer and leaves dormancy");
    await boot.makeUp();
    if (!lifecycle.isStopping()) {
      core.log.info({ public: true }, "The node is awake");
    }
  }
}

/** Every row of the boot may be the one that meets trouble of the database, which has a sentence of its own. */
function toStartError({ databaseUrl }: Config, error: unknown): StartError {
  if (error instanceof StartError) {
    return error;
  }
  const isAway = isDatabaseError(error) && !isDatabaseCorruption(error);
  const { message } = isAway ? explainTrouble(databaseUrl, error) : { message: errorMessage(error) };
  return new StartError(message, { cause: error });
}

function stateOf({ config, lifecycle }: NodeCore): string {
  if (config.role === "standby") {
    return " and stands by";
  }
  return lifecycle.isDormant() ? ", dormant" : "";
}

function describeNode(core: NodeCore, booted: Booted, stop: () => Promise<void>): RunningNode {
  const { key, network, chain, rpcPort, application, omniPort, controlPort, turn } = booted;
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
    turn,
    role: core.config.role,
    workers: countWorkers(core.config),
    application,
    log: core.log,
    stop,
  };
}
