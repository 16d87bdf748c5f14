/**
 * Network of a node. Its parts are:
 *
 * - the address book (network-book),
 * - the sync with peers (network-sync),
 * - the relay of transactions to block producers (network-relay),
 * - the readiness for transactions (network-readiness),
 * - the main loop that runs all of them (network-loop).
 */
import type { NodeKey } from "../../base/crypto/node-key.js";
import type { Chain } from "../../chain/chain.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { HeadStatements } from "../../chain/writer/head-statements.js";
import type { Database } from "../../db/queries/database.js";
import type { SharedSubsystem } from "../../health/shared-subsystem.js";
import { createChallenges } from "../../peers/handshake/challenges.js";
import { createDuplicateIdentities } from "../../peers/handshake/duplicate-identities.js";
import type { MainLoop } from "../../peers/sync/main-loop.js";
import type { PeerBook } from "../../peers/address-book/peer-book.js";
import { createPeerService } from "../../peers/service.js";
import type { Sync, SyncProgress } from "../../peers/sync/sync.js";
import type { NodePool } from "../chain/chain.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { NodeSnapshotSync, NodeSnapshotSyncDeps } from "./snapshot-sync.js";
import type { Forks } from "./forks.js";
import { createMayFollow, followersOf, type MayFollow, warnOfOpenPrograms } from "./followers.js";
import {
  type BookCommands,
  countPeers,
  createBookCommands,
  nameEndpoint,
  openBook,
  type PeerCounts,
} from "./network-book.js";
import { createNodeLoop, createTaskErrors, reportProgress, type TaskErrors } from "./network-loop.js";
import { createReadiness, type Readiness } from "./network-readiness.js";
import { createNodeRelay, type NodeRelay } from "./network-relay.js";
import { readMarkers, createProductionGuard } from "./production-guard.js";
import { createSourceOf } from "./transaction-sources.js";
import { monitorClock, monitorKeys } from "./network-monitors.js";
import { describeNoConsensus } from "../chain/block-production.js";
import { connectPeers, createNodeSync, peerDeadlineMs } from "./network-sync.js";

/** Dependencies of the network besides the core. */
export interface NodeNetworkDeps {
  readonly database: Database;
  readonly pool: NodePool;
  readonly chain: Chain;
  readonly genesis: Genesis | undefined;
  readonly key: NodeKey;
  readonly forks: Forks;
  readonly heads: HeadStatements;
  /** Returns true if the role and the writer lease permit this node to accept transactions. */
  readonly mayAccept: () => boolean;
  readonly chainHealth: SharedSubsystem;
  readonly syncDeps: NodeSnapshotSyncDeps | undefined;
}

/** Network of a node. */
export interface NodeNetwork extends BookCommands, Readiness, Pick<NodeRelay, "precheck" | "submit"> {
  readonly book: PeerBook;
  readonly mayFollow: MayFollow;
  readonly mainLoop: MainLoop;
  /** Service for other nodes. */
  readonly service: ReturnType<typeof createPeerService>;
  /**
   * Returns the reason why the network's only authority does not know yet if a newer block exists; undefined once it
   * knows.
   */
  readonly whyUnknown: () => string | undefined;
  /** Checks if a time, by default now, is too far ahead of the peers' clocks. Shows and returns the reason if so. */
  readonly checkClock: (timeMs?: number) => string | undefined;
  /** Starts the main loop and everything that runs with it. */
  start(): void;
  /**
   * Returns the normalized form of this node's own endpoint. Warns if only nodes on this machine or site can call it.
   *
   * @throws InputError if the endpoint is invalid, or if its scheme does not match --omni-tls.
   */
  nameEndpoint(url: string): string;
  /** Returns the number of the latest block of the verified peers; undefined if none is known. */
  peerBlock(): bigint | undefined;
  countPeers(): PeerCounts;
  /** Returns the progress of the block sync; undefined when none is in progress. */
  syncProgress(): SyncProgress | undefined;
}

/** Creates the network without starting it. */
export async function createNodeNetwork(core: NodeCore, deps: NodeNetworkDeps): Promise<NodeNetwork> {
  const { database, pool, chain, genesis, key, forks, heads, chainHealth } = deps;
  const authorities = genesis?.authorities ?? [];
  const isAuthority = authorities.includes(key.publicKey);
  const isWriter = core.config.role === "writer";
  const hasConsensus = watchConsensus(core);
  const onTaskError = createTaskErrors(core);

  const nodeBook = await openBook(core, { database, ownIdentity: key.publicKey });
  const { book, policy, dialRateLimit, save } = nodeBook;
  const mayFollow = createMayFollow(core, { genesis, book });
  warnOfOpenPrograms(core, { genesis, reads: database.read });
  const { client, siteOf } = connectPeers(core, key, nodeBook);
  const onKeyElsewhere = (endpoint: string): void => reportKeyUse(endpoint);
  const nodeSync = createNodeSync(core, {
    ...{ ...nodeBook, chain, genesis, key, forks, heads, client, onKeyElsewhere, onTaskError },
    syncDeps: deps.syncDeps,
    isAccepting: () => readiness.isAccepting(),
  });
  const { self, dialer, readStatus, sync, snapshotSync, onStatus } = nodeSync;
  const duplicates = createDuplicateIdentities(Date.now);
  const reportKeyUse = monitorKeys(core, { self, client, book, genesis, chainHealth, duplicates });
  const checkClock = monitorClock(core, {
    ...{ book, genesis, siteOf, chainHealth },
    earliestMs: () => (isAuthority ? Number(chain.head()?.timestampMs ?? 0) : 0),
  });
  const whyNoTarget = (): string | undefined =>
    isAuthority && authorities.length > 1 && !hasConsensus() ? describeNoConsensus(authorities.length) : undefined;
  const isRelaying = isWriter && !isAuthority;
  const relay = createNodeRelay(core, {
    ...{ mempool: pool.mempool, chain, book, client, authorities, mayFollow, isRelaying, hasConsensus, onTaskError },
    followers: followersOf(core.config, genesis),
    statusOf: (hash) => pool.view.transactionStatus(hash),
    whyRefused: () => forks.whyStopped() ?? core.clock.whyAhead() ?? whyNoTarget(),
    sourceOf: createSourceOf(core.config),
  });
  const mainLoop = createNodeLoop(core, {
    tasks: [
      ...nodeSync.tasks,
      ...relay.tasks,
      ...(isWriter ? [{ name: "address book", run: save }] : []),
      { name: "clock", run: () => void checkClock() },
    ],
    tickDeadlineMs: 2 * peerDeadlineMs,
    onTaskError,
  });

  const whyUnknown = createProductionGuard(core, { chain, book, markers: await readMarkers(core, genesis) });

  const readiness = createReadiness(core, {
    ...{ chain, book, sync, mainLoop, forks, mayAccept: deps.mayAccept, whyUnknown, hasConsensus },
    isOnlyAuthority: isAuthority && authorities.length === 1,
  });

  return {
    book,
    mayFollow,
    mainLoop,
    service: createPeerService({
      ...{
        self,
        book,
        dialer,
        policy,
        dialRateLimit,
        readStatus,
        onStatus,
        acceptTransaction: relay.acceptTransaction,
      },
      ...{ challenges: createChallenges(Date.now), duplicates, onKeyElsewhere },
      onError: (error) => onTaskError("relay", error),
    }),
    ...readiness,
    whyUnknown,
    checkClock,
    precheck: relay.precheck,
    submit: relay.submit,
    start: () => startNetwork(core, { mainLoop, relay, sync, snapshotSync, save, onTaskError }),
    nameEndpoint: (url) => nameEndpoint(core, nodeBook, url),
    ...createBookCommands(core, nodeBook, { dialer, client }),
    peerBlock: () => book.highestBlock(),
    countPeers: () => countPeers(nodeBook),
    syncProgress: () => sync.progress(),
  };
}

/** Starts the main loop and everything that runs with it, and adds the shutdown hook. */
function startNetwork(
  core: Pick<NodeCore, "log" | "onShutdown" | "subsystems">,
  {
    mainLoop,
    relay,
    sync,
    snapshotSync,
    save,
    onTaskError,
  }: {
    readonly mainLoop: MainLoop;
    readonly relay: NodeRelay;
    readonly sync: Sync;
    readonly snapshotSync: NodeSnapshotSync | undefined;
    readonly save: () => Promise<void>;
    readonly onTaskError: TaskErrors;
  },
): void {
  mainLoop.start();
  relay.start();
  const progress = reportProgress(
    core,
    { sync: () => sync.progress(), snapshotSync: () => snapshotSync?.progress() },
    onTaskError,
  );
  core.onShutdown("the main loop", async () => {
    await Promise.all([progress.stop(), sync.stop(), snapshotSync?.stop(), relay.stop()]);
    await mainLoop.stop("The node is shutting down.");
    await save().catch((error: unknown) => core.log.warn({ err: error }, "The address book could not be saved"));
  });
}

/** Returns a predicate that is true while an external consensus process reports that it is ready to supply blocks. */
function watchConsensus({ bus }: Pick<NodeCore, "bus">): () => boolean {
  let isReady = false;
  bus.on("consensusReported", (report) => {
    isReady = report.isReady;
  });
  return () => isReady;
}
