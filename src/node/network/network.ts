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
import type { SharedSubsystem } from "../../health/subsystems.js";
import { createChallenges } from "../../peers/handshake/challenges.js";
import { createDuplicateIdentities } from "../../peers/handshake/duplicate-keys.js";
import { createPeerService } from "../../peers/service.js";
import type { NodePool } from "../chain/chain.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { NodeSnapshotSyncDeps } from "./snapshot-sync.js";
import type { Forks } from "./forks.js";
import { createMayFollow, followersOf, warnOfOpenPrograms } from "./followers.js";
import { countPeers, createBookCommands, nameEndpoint, openBook } from "./network-book.js";
import { createNodeLoop, createTaskErrors, reportProgress } from "./network-loop.js";
import { createProductionGuard, createReadiness } from "./network-readiness.js";
import { createNodeRelay } from "./network-relay.js";
import { monitorClock, monitorKeys } from "./network-monitors.js";
import { describeNoConsensus } from "../chain/block-production.js";
import { connectPeers, createNodeSync, peerDeadlineMs } from "./network-sync.js";

/** Dependencies of the network besides the core. */
interface NodeNetworkDeps {
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

export type NodeNetwork = Awaited<ReturnType<typeof createNodeNetwork>>;

/** Creates the network without starting it. */
export async function createNodeNetwork(core: NodeCore, deps: NodeNetworkDeps) {
  const { database, pool, chain, genesis, key, forks, heads, chainHealth, syncDeps, mayAccept } = deps;
  const authorities = genesis?.authorities ?? [];
  const isAuthority = authorities.includes(key.publicKey);
  const isWriter = core.config.role === "writer";
  const onTaskError = createTaskErrors(core);
  /** True while an external consensus process reports that it is ready to supply blocks. */
  let isConsensusReady = false;
  core.bus.on("consensusReported", ({ isReady }) => {
    isConsensusReady = isReady;
  });
  const hasConsensus = (): boolean => isConsensusReady;

  const nodeBook = await openBook(core, { database, ownIdentity: key.publicKey });
  const { book, policy, dialRateLimit, save } = nodeBook;
  const mayFollow = createMayFollow(core, { genesis, book });
  warnOfOpenPrograms(core, { genesis, reads: database.read });
  const { client, siteOf } = connectPeers(core, key, nodeBook);
  const onKeyElsewhere = (endpoint: string): void => reportKeyUse(endpoint);
  const isAccepting = (): boolean => readiness.isAccepting();
  const nodeSync = createNodeSync(core, {
    ...{ ...nodeBook, chain, genesis, key, forks, heads, client, onKeyElsewhere, onTaskError, syncDeps, isAccepting },
  });
  const { self, dialer, readStatus, sync, snapshotSync } = nodeSync;
  const duplicates = createDuplicateIdentities(Date.now);
  const reportKeyUse = monitorKeys(core, { book, genesis, chainHealth }, { self, client, duplicates });
  const checkClock = monitorClock(core, { book, genesis, chainHealth }, siteOf, () =>
    isAuthority ? Number(chain.head()?.timestampMs ?? 0) : 0,
  );
  const whyNoTarget = (): string | undefined =>
    isAuthority && authorities.length > 1 && !hasConsensus() ? describeNoConsensus(authorities.length) : undefined;
  const relay = createNodeRelay(core, {
    ...{ pool, chain, book, client, authorities, mayFollow, hasConsensus, onTaskError },
    isRelaying: isWriter && !isAuthority,
    followers: followersOf(core.config, genesis),
    whyRefused: () => forks.whyStopped() ?? core.clock.whyAhead() ?? whyNoTarget(),
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
  const whyUnknown = await createProductionGuard(core, genesis, { chain, book });
  const readiness = createReadiness(core, {
    ...{ chain, book, sync, mainLoop, forks, mayAccept, whyUnknown, hasConsensus },
    isOnlyAuthority: isAuthority && authorities.length === 1,
  });

  return {
    ...{ book, mayFollow, mainLoop, ...readiness, whyUnknown, checkClock },
    /** Service for other nodes. */
    service: createPeerService({
      ...{ self, book, dialer, policy, dialRateLimit, readStatus, duplicates, onKeyElsewhere },
      acceptTransaction: relay.acceptTransaction,
      onStatus: () => nodeSync.onStatus(),
      challenges: createChallenges(Date.now),
      onError: (error) => onTaskError("relay", error),
    }),
    precheck: relay.precheck,
    submit: relay.submit,
    /** Starts the main loop and everything that runs with it, and adds the shutdown hook. */
    start(): void {
      mainLoop.start();
      relay.start();
      const progress = reportProgress(core, { sync, snapshotSync }, onTaskError);
      core.onShutdown("the main loop", async () => {
        await Promise.all([progress.stop(), sync.stop(), snapshotSync?.stop(), relay.stop()]);
        await mainLoop.stop("The node is shutting down.");
        await save().catch((error: unknown) => core.log.warn({ err: error }, "The address book could not be saved"));
      });
    },
    nameEndpoint: (url: string) => nameEndpoint(core, nodeBook, url),
    ...createBookCommands(core, nodeBook, { dialer, client }),
    /** Returns the number of the latest block of the verified peers; undefined if none is known. */
    peerBlock: () => book.highestBlock(),
    countPeers: () => countPeers(nodeBook),
    syncProgress: () => sync.progress(),
  };
}
