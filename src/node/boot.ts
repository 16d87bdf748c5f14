/**
 * Boot of a node, row by row: all modules of a node, in the order in which they are created. boot-table.ts runs the
 * rows. The folders next to this file hold the modules.
 */
import { errorMessage } from "../base/errors/error-message.js";
import { StartError } from "../base/errors/start-error.js";
import { createChainBodyChecks } from "../chain/service.js";
import { adoptGenesis, verifyStoredChain } from "../chain/blocks/genesis.js";
import { createChainStore } from "../chain/chain-store.js";
import type { ChainHead, ChainStore } from "../chain/blocks/store.js";
import type { HeldLease } from "../chain/writer/writer-lease-store.js";
import { readGenesisFile } from "../config/genesis-file.js";
import { findFile } from "../config/data-dir-files.js";
import { createNodeAttestation } from "./serving/attestation.js";
import { BootTable } from "./lifecycle/boot-table.js";
import { createChainServices } from "./serving/chain-services.js";
import { createNodeChain, watchChainHealth } from "./chain/chain.js";
import { openControl } from "./serving/control.js";
import { createNodeEvents } from "./serving/event-service.js";
import type { NodeCore } from "./lifecycle/core.js";
import { createNodeEdge } from "./serving/edge.js";
import { monitorStore } from "./chain/corruption-monitoring.js";
import { loadIdentity, openNodeDatabase } from "./data/database.js";
import { DatabaseUnavailableError, untilDatabaseResponds } from "./lifecycle/database-wait.js";
import { type State, stateIn } from "./chain/transaction-executor.js";
import { watchForks } from "./network/forks.js";
import { startHeadSigner } from "./chain/head-signer.js";
import { createNodeHealth } from "./serving/health.js";
import { createNodeHistory, recordHistory } from "./serving/history.js";
import { createSnapshotSyncStatus, type SnapshotSyncStatus } from "./chain/snapshot-sync-status.js";
import { type NodeLease, openLease } from "./chain/lease.js";
import { openInternalPort, openMcpPort, openMetricsPort, openRpcPort } from "./serving/listeners.js";
import { createNodeNetwork } from "./network/network.js";
import type { NodeSnapshotSyncDeps } from "./network/snapshot-sync.js";
import { startPruning } from "./chain/pruning.js";
import { startBlockProduction } from "./chain/block-production.js";
import { createNodeState } from "./chain/state.js";
import { readSync } from "../snapshot/sync-store.js";
import { createNodeSnapshotService, openSnapshots } from "./chain/snapshots.js";
import { createPublicFacts } from "./serving/public-facts.js";
import { createPublicServices } from "./serving/public-services.js";
import { createBootedInfo, createDataServices, createEarlyServices, listInternalServices } from "./serving/services.js";
import { type Standby, startStandby } from "./chain/standby.js";
import { openTls } from "./serving/tls.js";
import { createNodeWorkers } from "./serving/workers.js";
import { startDataVerifier } from "./data/data-verifier.js";

const reportedElsewhere = "Another process runs it, and has not reported it to the control service yet.";

/** Initial values of a boot. */
export interface BootInput {
  readonly core: NodeCore;
  /** Writer lease that was acquired for this node in advance; undefined if the node acquires a lease itself. */
  readonly acquiredLease: HeldLease | undefined;
}

export const bootTable = BootTable.of<BootInput>()
  .part({
    name: "certificate",
    needs: ["core"],
    provides: ["tls"],
    run: async ({ core }) => ({ tls: await openTls(core) }),
  })
  .part({
    name: "chain health",
    needs: ["core"],
    provides: ["chainHealth"],
    run: ({ core }) => ({ chainHealth: watchChainHealth(core) }),
  })
  .part({
    name: "workers",
    needs: ["core"],
    provides: ["workers"],
    run: ({ core }) => ({ workers: createNodeWorkers(core) }),
  })
  .part({
    name: "public facts",
    needs: ["core"],
    provides: ["facts", "history"],
    run: ({ core }) => ({ facts: createPublicFacts(core), history: createNodeHistory(core) }),
  })
  .part({
    name: "health",
    needs: ["core", "chainHealth"],
    provides: ["health"],
    run: ({ core, chainHealth }) => ({ health: createNodeHealth(core, { chainHealth }) }),
  })
  .part({
    name: "edge",
    needs: ["core", "workers", "facts", "health", "tls"],
    provides: ["edge", "edgeStats", "metrics", "observe"],
    run: ({ core, ...parts }) => createNodeEdge(core, parts),
  })
  .part({
    name: "early services",
    needs: ["core", "health", "edgeStats"],
    provides: ["attestation", "early", "services", "provide", "open"],
    run({ core, ...parts }) {
      const attestation = createNodeAttestation(core);
      const early = createEarlyServices(core, { ...parts, attestation });
      return { attestation, early, ...createPublicServices(core, early) };
    },
  })
  // Before any step that may have to wait, so that clients can query the progress of the boot.
  .part({
    name: "public port",
    needs: ["core", "services", "edge", "history", "tls", "facts", "chainHealth", "workers", "health"],
    provides: ["rpcPort", "application", "drainFirst"],
    async run({ core, health, ...parts }) {
      const port = await openRpcPort(core, parts);
      // Added after the port's hook, so that it runs before: the port would wait for these subscriptions.
      core.onShutdown("the health subscriptions", () => health.feed.close());
      return port;
    },
  })
  .step({
    name: "database",
    needs: ["core"],
    provides: ["database"],
    run: async ({ core }) => ({ database: await openNodeDatabase(core) }),
  })
  // After the database, which stores the identity of its node.
  .step({
    name: "identity",
    needs: ["core", "database"],
    provides: ["key"],
    run: async ({ core, database }) => ({ key: await untilDatabaseResponds(core, () => loadIdentity(core, database)) }),
  })
  .part({
    name: "lease",
    needs: ["core", "database", "key", "chainHealth", "acquiredLease"],
    provides: ["lease", "store"],
    async run({
      core,
      ...parts
    }): Promise<{ readonly lease: NodeLease | undefined; readonly store: ChainStore<State> }> {
      const lease = core.config.role === "writer" ? await openLease(core, parts) : undefined;
      return { lease, store: createChainStore(parts.database, stateIn, lease?.fence) };
    },
  })
  .step({
    name: "genesis",
    needs: ["core", "store"],
    provides: ["genesis"],
    async run({ core, store }) {
      const { role, dataDir, genesisFile } = core.config;
      const file = role === "writer" ? await readGenesisFile(findFile(dataDir, genesisFile, "genesis")) : undefined;
      return { genesis: await untilDatabaseResponds(core, () => adoptGenesis(store, file)) };
    },
  })
  .step({
    name: "chain",
    needs: ["core", "database", "store", "genesis", "chainHealth"],
    provides: ["head", "syncStatus"],
    // A chain that fails verification can still be inspected. Without the database, nothing is known about the chain.
    whenFailed: (error) => (error instanceof DatabaseUnavailableError ? "end" : "go on"),
    notPossible: ({ genesis }) =>
      genesis === undefined ? "There is no genesis block yet; start the node with --genesis FILE." : undefined,
    async run({ core, database, store, genesis, chainHealth }): Promise<{
      readonly head: ChainHead | undefined;
      readonly syncStatus: SnapshotSyncStatus;
    }> {
      try {
        return await untilDatabaseResponds(core, async () => {
          const isSyncing = (await readSync(database.read)) !== undefined;
          return {
            head: isSyncing ? undefined : await verifyStoredChain(store, genesis!),
            syncStatus: createSnapshotSyncStatus(isSyncing),
          };
        });
      } catch (error) {
        core.corruption.recordRequestError(error);
        // Permanent: the error remains when the database accepts writes again.
        chainHealth.report("boot", errorMessage(error));
        throw error;
      }
    },
    otherwise: () => ({ head: undefined, syncStatus: createSnapshotSyncStatus(false) }),
  })
  .part({
    name: "fork detection",
    needs: ["core", "database", "store", "genesis", "chainHealth", "key"],
    provides: ["forks"],
    run: async ({ core, ...parts }) => ({ forks: await watchForks(core, parts) }),
  })
  .part({
    name: "corruption monitor",
    needs: ["core", "store"],
    provides: ["monitoredStore"],
    // After the chain step, which reports corruption itself.
    run: ({ core, store }) => ({ monitoredStore: monitorStore(store, core.corruption) }),
  })
  .part({
    name: "snapshots",
    needs: ["core", "store"],
    provides: ["snapshots"],
    run: async ({ core, store }) => ({ snapshots: await openSnapshots(core, { store }) }),
  })
  .part({
    name: "chain data",
    needs: ["core", "database", "monitoredStore", "genesis", "head", "syncStatus", "forks", "lease", "snapshots"],
    provides: ["chain", "written", "pool", "data"],
    run({ core, monitoredStore: store, forks: { headers }, ...parts }) {
      if (core.config.role !== "writer" && parts.head === undefined && !parts.syncStatus.isRunning()) {
        throw new StartError("The database has no chain to read yet; start the node that writes to it first.");
      }
      return createNodeChain(core, { ...parts, store, headers });
    },
  })
  .part({
    name: "heads",
    needs: ["core", "chain", "genesis"],
    provides: ["heads"],
    run: ({ core, ...parts }) => ({ heads: startHeadSigner(core, parts) }),
  })
  .part({
    name: "data verifier",
    needs: ["core", "database", "genesis", "head", "syncStatus"],
    provides: ["verifier"],
    run: ({ core, database, genesis, head, syncStatus }) => ({
      verifier:
        genesis === undefined || (head === undefined && !syncStatus.isRunning())
          ? undefined
          : startDataVerifier(core, { database, genesis, syncStatus }),
    }),
  })
  .part({
    name: "pruning",
    needs: ["core", "database", "lease", "written"],
    provides: [],
    run({ core, database, lease, written }) {
      if (written !== undefined && lease !== undefined) {
        startPruning(core, { database, fence: lease.fence, chain: written });
      }
    },
  })
  .part({
    name: "snapshot sync",
    needs: ["database", "store", "genesis", "lease", "written", "syncStatus", "data"],
    provides: ["syncDeps"],
    run({ database, store, genesis, lease, written: chain, syncStatus, data: { invalidateAll } }): {
      readonly syncDeps: NodeSnapshotSyncDeps | undefined;
    } {
      if (chain === undefined || genesis === undefined || lease === undefined) {
        return { syncDeps: undefined };
      }
      const { fence } = lease;
      return { syncDeps: { database, store, genesis, fence, chain, syncStatus, invalidateAll } };
    },
  })
  .step({
    name: "peers",
    needs: [
      "core",
      "database",
      "pool",
      "chain",
      "genesis",
      "key",
      "forks",
      "heads",
      "chainHealth",
      "lease",
      "syncDeps",
    ],
    provides: ["network"],
    async run({ core, lease, ...parts }) {
      const { role } = core.config;
      const mayAccept = (): boolean => role !== "standby" && lease?.isHeld() !== false;
      const network = await createNodeNetwork(core, { ...parts, mayAccept });
      // A reader needs no peers, because its blocks arrive through the database.
      core.lifecycle.setDormant(role !== "reader" && network.book.isEmpty());
      return { network };
    },
  })
  .part({
    name: "distance to the peers",
    needs: ["snapshots", "network"],
    provides: [],
    run: ({ snapshots, network }) => snapshots.compareWith(() => network.peerBlock()),
  })
  .part({
    name: "health sources",
    needs: ["core", "database", "monitoredStore", "health", "chain", "data", "network", "history"],
    provides: [],
    run({ core, database, monitoredStore: store, health, chain, data, network, history }) {
      health.setSources({ database, store, mainLoop: network.mainLoop, isAccepting: network.isAccepting });
      recordHistory(core, history, { health, chain, store, tree: data.tree, network });
    },
  })
  .part({
    name: "metrics and traces",
    needs: ["key", "network", "chain", "pool", "data", "verifier", "observe"],
    provides: [],
    run: ({ observe, ...parts }) => observe(parts),
  })
  .part({
    name: "chain services",
    needs: ["core", "monitoredStore", "genesis", "chain", "heads", "pool", "data", "network", "provide"],
    provides: ["chainServices"],
    run({ core, monitoredStore: store, genesis, chain, heads, pool, data, network, provide }) {
      const chainServices = createChainServices({
        chain: { head: () => chain.head(), hasGenesis: genesis !== undefined, submit: network.submit },
        heads,
        store: { ...store, ...pool.view },
        readable: data.readable,
        mayFollow: network.mayFollow,
        readershipBytes: core.memory.readershipBytes,
      });
      provide({ chain: chainServices.anyCaller, chainBodyChecks: createChainBodyChecks(network.precheck) });
      return { chainServices };
    },
  })
  .part({
    name: "info service",
    needs: ["core", "early", "key", "genesis", "network", "provide"],
    provides: [],
    run: ({ core, provide, ...parts }) => provide({ info: createBootedInfo(core, parts) }),
  })
  .part({
    name: "data services",
    needs: ["monitoredStore", "chain", "pool", "data", "provide"],
    provides: [],
    run: ({ monitoredStore: store, chain, pool: { view }, data, provide }) =>
      provide(createDataServices({ store, chain, view, data })),
  })
  .part({
    name: "state service",
    needs: ["core", "database", "monitoredStore", "chain", "heads", "provide"],
    provides: [],
    run: ({ core, monitoredStore: store, provide, ...parts }) =>
      provide({ state: createNodeState(core, { ...parts, store }) }),
  })
  .part({
    name: "event service",
    needs: ["core", "monitoredStore", "chain", "heads", "data", "provide"],
    provides: ["events"],
    run({ core, monitoredStore: store, data: { readable }, provide, ...parts }) {
      const events = createNodeEvents(core, { ...parts, readable, store });
      provide({ event: events.service });
      return { events };
    },
  })
  .step({
    name: "control",
    needs: ["core", "network", "chain", "heads", "chainServices"],
    provides: ["controlPort"],
    run: async ({ core, ...parts }) => ({ controlPort: await openControl(core, parts) }),
  })
  .step({
    name: "rpc",
    needs: ["chain", "heads", "genesis", "key", "facts", "open", "workers", "drainFirst"],
    provides: [],
    async run({ facts, open, workers, key, drainFirst, ...sources }) {
      facts.set(sources);
      open();
      await workers?.serve(key);
      drainFirst();
    },
  })
  .step({
    name: "metrics",
    needs: ["core", "metrics"],
    provides: [],
    whenFailed: "go on",
    notEnabled: ({ metrics }) => (metrics === undefined ? "--metrics-enabled is not set." : undefined),
    run: ({ core, metrics }) => openMetricsPort(core, metrics!),
  })
  .elsewhere({ name: "signaling", reason: reportedElsewhere, whenDormant: "wait" })
  .step({
    name: "mcp",
    needs: ["core", "services", "edge"],
    provides: [],
    whenDormant: "wait",
    whenFailed: "go on",
    notEnabled: ({ core: { config } }) => (config.mcpEnabled ? undefined : "--mcp-enabled is not set."),
    run: ({ core, ...parts }) => openMcpPort(core, parts),
  })
  .step({
    name: "tlsnotary",
    needs: ["core", "attestation"],
    provides: [],
    whenDormant: "wait",
    whenFailed: "go on",
    notEnabled: ({ core: { config } }) => (config.tlsnotaryEnabled ? undefined : "TLSNOTARY_ENABLED is not true."),
    run: ({ attestation }) => attestation.start(),
  })
  .step({
    name: "omni",
    needs: ["core", "database", "key", "genesis", "network", "chainServices", "snapshots"],
    provides: ["omniPort"],
    async run({ core, database, key, genesis, network, chainServices, snapshots }) {
      const { config, addresses } = core;
      // A standby has the key of the writer, so it offers no services to other nodes.
      const services =
        core.config.role === "standby"
          ? []
          : listInternalServices({
              peer: network.service,
              chain: chainServices.nodes,
              snapshot: createNodeSnapshotService(database.read, {
                snapshotStore: snapshots.snapshotStore,
                mayFollow: network.mayFollow,
              }),
            });
      const omniPort = await openInternalPort(core, { services, key, genesis });
      const defaultUrl = `${config.omniTls ? "https" : "http"}://${new URL(addresses.connectionString).hostname}:${omniPort}`;
      addresses.omniUrl = network.nameEndpoint(config.omniUrl ?? defaultUrl);
      return { omniPort };
    },
  })
  // The network updates the state of this subsystem once its main loop runs.
  .step({ name: "dtr", needs: [], provides: [], whenDormant: "wait", whenFailed: "go on", run: () => undefined })
  .elsewhere({ name: "l2ps", reason: reportedElsewhere, whenDormant: "run" })
  .part({
    name: "block production",
    needs: ["core", "genesis", "chain", "syncStatus", "heads", "chainHealth", "key", "network", "forks", "lease"],
    provides: [],
    run: ({ core, network: { isSynced, whyUnknown, checkClock }, forks: { whyStopped }, lease, ...parts }) =>
      startBlockProduction(core, {
        ...{ ...parts, whyUnknown, whyStopped, checkClock },
        isSynced: () => lease?.isHeld() !== false && isSynced(),
      }),
  })
  .step({
    name: "main_loop",
    needs: ["network"],
    provides: [],
    whenDormant: "wait",
    run: ({ network }) => network.start(),
  })
  .part({
    name: "standby",
    needs: ["core", "database", "key"],
    provides: ["takeoverLease"],
    run: ({ core, ...parts }): Standby | Promise<Standby> =>
      core.config.role === "standby" ? startStandby(core, parts) : { takeoverLease: undefined },
  })
  .part({
    name: "watchers",
    needs: ["core", "health", "events"],
    provides: [],
    // Added last, so that it runs first: subscribers learn that the node takes no more traffic, but not what closes
    // later.
    run: ({ core, health, events }) =>
      core.onShutdown("the event subscriptions", async () => {
        events.close();
        await health.feed.close();
      }),
  });

/** Values that a completed boot provides. */
export type Booted = typeof bootTable extends BootTable<infer C> ? C : never;
