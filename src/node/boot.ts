/**
 * Boot of a node: creates all its parts in order, and hands each part what it uses. The compiler rejects a part that
 * comes before what it needs. The folders next to this file hold the parts.
 */
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { PeerService } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { SnapshotService } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { errorMessage } from "../base/errors/error-message.js";
import { StartError } from "../base/errors/start-error.js";
import { createChainBodyChecks, createConsensusService } from "../chain/service.js";
import { adoptGenesis, type Genesis, verifyStoredChain } from "../chain/blocks/genesis.js";
import { createChainStore } from "../chain/chain-store.js";
import type { ChainStore } from "../chain/blocks/store.js";
import type { ChainHead } from "../chain/blocks/store-types.js";
import { readGenesisFile } from "../config/input-files.js";
import { findFile } from "../config/data-dir-files.js";
import type { Database } from "../db/queries/database.js";
import type { SharedSubsystem } from "../health/subsystems.js";
import { createNodeAttestation } from "./serving/attestation.js";
import type { BootSteps } from "./lifecycle/boot-steps.js";
import { createChainServices, serveNodes } from "./serving/chain-services.js";
import { createNodeChain, watchChainHealth } from "./chain/chain.js";
import { openControl } from "./serving/control.js";
import { createNodeEvents } from "./serving/event-service.js";
import type { NodeCore } from "./lifecycle/core.js";
import { createNodeEdge } from "./serving/edge.js";
import { monitorStore } from "./chain/corruption-monitoring.js";
import { loadIdentity, openNodeDatabase } from "./data/database.js";
import { monitorDisks } from "./data/disk-monitoring.js";
import { DatabaseUnavailableError, untilDatabaseResponds } from "./lifecycle/database-wait.js";
import { type State, stateIn } from "./chain/transaction-executor.js";
import { watchForks } from "./network/forks.js";
import { startHeadSigner } from "./chain/head-signer.js";
import type { Succession } from "./lifecycle/role-change.js";
import { createNodeHealth } from "./serving/health.js";
import { createNodeHistory, recordHistory } from "./serving/history.js";
import { createSnapshotSyncStatus, type SnapshotSyncStatus } from "./chain/snapshot-sync-status.js";
import { openLease } from "./chain/lease.js";
import { openInternalPort, openMcpPort, openMetricsPort, openRpcPort } from "./serving/listeners.js";
import { createNodeNetwork } from "./network/network.js";
import { readinessReasons } from "./network/readiness-reasons.js";
import { startPruning } from "./chain/pruning.js";
import { startBlockProduction } from "./chain/block-production.js";
import { createNodeState } from "./chain/state.js";
import { serve } from "../rpc/service.js";
import { readSync } from "../snapshot/sync-store.js";
import { createNodeSnapshotService, openSnapshots } from "./chain/snapshots.js";
import { createPublicFacts } from "./serving/public-facts.js";
import { createDataServices } from "./serving/data-services.js";
import { createBootedInfo, createEarlyServices, listServices } from "./serving/services.js";
import { startStandby } from "./chain/standby.js";
import { openTls } from "./serving/tls.js";
import { createNodeWorkers } from "./serving/workers.js";
import { startDataVerifier } from "./data/data-verifier.js";

/** Parts of a node that the code that started it uses. */
export type Booted = Awaited<ReturnType<typeof bootNode>>;

/**
 * Creates the parts of a node.
 *
 * @throws the error of a step that the node cannot do without; the signal's reason as soon as the node stops.
 */
export async function bootNode(
  core: NodeCore,
  { run, runOptional, unlessStopped }: BootSteps,
  { acquiredLease, replacedAtMs }: Succession,
) {
  const { addresses, bus, config, corruption, lifecycle, log, logLines, memory, onShutdown } = core;
  const { progress, stateHeadEveryMs, subsystems, warn } = core;
  const { role } = config;

  // The public port is bound before any step that may have to wait, so that clients can query the progress of the boot.
  const tls = await unlessStopped(openTls({ bus, config, log, onShutdown, warn }));
  const chainHealth = watchChainHealth({ bus, log, subsystems });
  const workers = createNodeWorkers(core);
  const facts = createPublicFacts({ progress });
  const history = createNodeHistory({ config });
  const health = createNodeHealth(core, chainHealth);
  const { edge, edgeStats, metrics, observe } = await unlessStopped(
    createNodeEdge(core, { facts, health, tls, workers }),
  );
  const attestation = createNodeAttestation({ config, log, onShutdown, subsystems, warn });
  const early = createEarlyServices({ addresses, config, logLines, subsystems }, health, edgeStats, attestation);
  const { services, open } = listServices({ progress }, early);
  const workersListener = workers?.listener({ services, facts, history, chainHealth });
  const { rpcPort, application, drainFirst } = await unlessStopped(
    openRpcPort(core, { services, edge, history, tls, facts }, workersListener),
  );
  // Added after the port's hook, so that it runs before: the port would wait for these subscriptions.
  onShutdown("the health subscriptions", () => health.feed.close());

  // The database stores the identity of its node.
  const database = await run("database", () => openNodeDatabase(core));
  monitorDisks({ bus, corruption }, database);
  const key = await run("identity", () => untilDatabaseResponds(core, () => loadIdentity({ config, log }, database)));
  const lease =
    role === "writer" ? await unlessStopped(openLease(core, { database, key, chainHealth, acquiredLease })) : undefined;
  const stored = createChainStore(database, stateIn, lease?.fence);
  const genesis = await run("genesis", () => loadGenesis(core, stored));
  const { head, syncStatus } = await loadChain(core, { run }, { database, stored, genesis, chainHealth });
  const forks = await unlessStopped(
    watchForks({ config, lifecycle, log, subsystems }, { database, store: stored, genesis, key, chainHealth }),
  );
  // Created after the chain step, which reports corruption itself.
  const store = monitorStore(stored, corruption);
  const snapshots = await unlessStopped(openSnapshots({ config, log, onShutdown }, { store: stored }));

  if (role !== "writer" && head === undefined && !syncStatus.isRunning()) {
    throw new StartError("The database has no chain to read yet; start the node that writes to it first.");
  }
  const { headers } = forks;
  const { chain, written, pool, data } = await unlessStopped(
    createNodeChain(core, { database, store, genesis, head, headers, lease, syncStatus, snapshots }),
  );
  const heads = startHeadSigner({ bus, log, stateHeadEveryMs }, { chain, genesis });
  const hasData = genesis !== undefined && (head !== undefined || syncStatus.isRunning());
  const verifier = hasData
    ? startDataVerifier({ bus, corruption, log, onShutdown }, { database, genesis, syncStatus })
    : undefined;
  const writing = written && lease && { database, fence: lease.fence, chain: written };
  if (writing !== undefined) {
    startPruning({ config, bus, log, onShutdown }, writing);
  }

  const network = await run("peers", async () => {
    const { invalidateAll } = data;
    const opened = await createNodeNetwork(core, {
      ...{ database, pool, chain, genesis, key, forks, heads, chainHealth },
      mayAccept: () => role !== "standby" && lease?.isHeld() !== false,
      syncDeps: writing && genesis && { ...writing, store: stored, genesis, syncStatus, invalidateAll },
    });
    // A reader needs no peers, because its blocks arrive through the database.
    lifecycle.setDormant(role !== "reader" && opened.book.isEmpty());
    return opened;
  });
  const { mainLoop, mayFollow, checkFollower } = network;
  snapshots.compareWith(() => network.peerBlock());
  health.setSources({ database, store, mainLoop, ...network.readiness });
  recordHistory({ bus, log, onShutdown }, history, { health, chain, store, tree: data.tree, network });
  await unlessStopped(observe({ key, network, chain, pool, data, verifier }));

  const chainServices = createChainServices({
    chain: { head: () => chain.head(), hasGenesis: genesis !== undefined, submit: network.submit },
    ...{ heads, store: { ...store, ...pool.view }, readable: data.readable },
    readershipBytes: memory.readershipBytes,
  });
  const events = createNodeEvents({ bus, memory }, { store, chain, heads, readable: data.readable });
  const laterServices = {
    chain: chainServices.anyCaller,
    chainBodyChecks: createChainBodyChecks(network.precheck),
    info: createBootedInfo({ addresses }, early, key, genesis, network),
    ...createDataServices({ store, chain, view: pool.view, data }),
    state: createNodeState({ corruption }, { database, store, chain, heads }),
    event: events.service,
  };

  const consensus = createConsensusService(chain, heads);
  const operatorServices = { consensus, chain: chainServices.operator, health: early.health };
  const controlPort = await run("control", () => openControl(core, network, operatorServices));
  await run("rpc", async () => {
    facts.set({ chain, heads, genesis });
    open(laterServices);
    await workers?.serve(key);
    drainFirst();
  });
  await runOptional("metrics", () => openMetricsPort(core, metrics!));
  await runOptional("mcp", () => openMcpPort(core, { services, edge }));
  await runOptional("tlsnotary", () => attestation.start());
  const omniPort = await run("omni", async () => {
    const snapshot = createNodeSnapshotService(database.read, {
      snapshotStore: snapshots.snapshotStore,
      checkFollower,
    });
    const internal = [
      serve(PeerService, network.service),
      serve(ChainService, serveNodes(chainServices, { mayFollow, checkFollower })),
      serve(SnapshotService, snapshot),
    ];
    // A standby has the key of the writer, so it offers no services to other nodes.
    const port = await openInternalPort(core, role === "standby" ? [] : internal, key, genesis);
    const host = new URL(addresses.connectionString).hostname;
    const defaultUrl = `${config.omniTls ? "https" : "http"}://${host}:${port}`;
    addresses.omniUrl = network.nameEndpoint(config.omniUrl ?? defaultUrl);
    return port;
  });
  // The network updates the state of this subsystem once its main loop runs.
  await runOptional("dtr", () => undefined);
  const { whyUnknown, checkClock } = network;
  startBlockProduction(core, {
    ...{ genesis, chain, syncStatus, heads, chainHealth, key, whyUnknown, checkClock, whyStopped: forks.whyStopped },
    isSynced: () => lease?.isHeld() !== false && network.isSynced(),
  });
  await runOptional("main_loop", () => network.start());
  const standby =
    role === "standby"
      ? await unlessStopped(startStandby({ log, onShutdown, subsystems }, { database, key, replacedAtMs }))
      : undefined;
  // Added last, so that it runs first: subscribers learn that the node takes no more traffic, but not what closes later.
  onShutdown("the event subscriptions", async () => {
    events.close();
    await health.feed.close();
  });
  return {
    key,
    network,
    chain,
    rpcPort,
    application,
    omniPort,
    controlPort,
    roleChange: standby?.roleChange ?? lease?.roleChange,
  };
}

type WaitingCore = Parameters<typeof untilDatabaseResponds>[0];

/** Stores the genesis of the file, on a node that writes, or loads the stored one. */
async function loadGenesis(core: WaitingCore, store: ChainStore<State>): Promise<Genesis | undefined> {
  const { role, dataDir, genesisFile } = core.config;
  const file = role === "writer" ? await readGenesisFile(findFile(dataDir, genesisFile, "genesis")) : undefined;
  return await untilDatabaseResponds(core, () => adoptGenesis(store, file));
}

interface StoredParts {
  readonly database: Database;
  readonly stored: ChainStore<State>;
  readonly genesis: Genesis | undefined;
  readonly chainHealth: SharedSubsystem;
}

/** Latest block, and the state of a snapshot sync. */
interface StoredChain {
  readonly head: ChainHead | undefined;
  readonly syncStatus: SnapshotSyncStatus;
}

/**
 * Verifies the stored chain. A chain that fails verification can still be inspected, so the boot continues without it.
 *
 * @throws DatabaseUnavailableError if nothing is known about the chain.
 */
async function loadChain(
  core: WaitingCore & Pick<NodeCore, "corruption" | "progress" | "warn">,
  { run }: Pick<BootSteps, "run">,
  { database, stored, genesis, chainHealth }: StoredParts,
): Promise<StoredChain> {
  const unknown = { head: undefined, syncStatus: createSnapshotSyncStatus(false) };
  if (genesis === undefined) {
    const reason = readinessReasons.noNetwork(core.config);
    core.progress.skip("chain", reason);
    core.warn("chain", reason);
    return unknown;
  }
  async function verify(): Promise<StoredChain> {
    const isSyncing = (await readSync(database.read)) !== undefined;
    const head = isSyncing ? undefined : await verifyStoredChain(stored, genesis!);
    return { head, syncStatus: createSnapshotSyncStatus(isSyncing) };
  }
  const verified = run("chain", () =>
    untilDatabaseResponds(core, verify).catch((error: unknown) => {
      core.corruption.recordRequestError(error);
      // Permanent: the error remains when the database accepts writes again.
      chainHealth.report("boot", errorMessage(error));
      throw error;
    }),
  );
  return await verified.catch((error: unknown) => {
    if (error instanceof DatabaseUnavailableError) {
      throw error;
    }
    return unknown;
  });
}
