/**
 * The network of a node: whom it knows (network-book), how it keeps up with their chain (network-sync), how transactions
 * get to where blocks are made (network-relay), whether it is ready for them (network-readiness), and the loop that does
 * all that again and again (network-loop).
 */
import type { NodeKey } from "../../base/crypto/node-key.js";
import type { Chain } from "../../chain/chain.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { HeadStatements } from "../../chain/writer/head-statements.js";
import type { Mempool } from "../../chain/mempool/mempool.js";
import type { MempoolView } from "../../chain/blocks/store.js";
import type { Database } from "../../db/queries/database.js";
import type { SharedSubsystem } from "../../health/shared-subsystem.js";
import { createChallenges } from "../../peers/handshake/challenges.js";
import { createDuplicateIdentities } from "../../peers/handshake/duplicate-identities.js";
import type { MainLoop } from "../../peers/sync/main-loop.js";
import type { PeerBook } from "../../peers/address-book/peer-book.js";
import { createPeerService } from "../../peers/service.js";
import type { Sync, SyncProgress } from "../../peers/sync/sync.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { NodeSnapshotSync, NodeJoinDeps } from "./snapshot-sync.js";
import type { Forks } from "./forks.js";
import { createMayFollow, followersOf, type MayFollow, warnWhereOpen } from "./followers.js";
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
import { takeWords, watchNewestBlock } from "./production-guard.js";
import { createOriginOf } from "./origins.js";
import { watchClock, watchKeys } from "./network-watches.js";
import { describeNoConsensus } from "../chain/block-production.js";
import { connectPeers, createNodeSync, peerDeadlineMs } from "./network-sync.js";

/** What the network of a node is made of, beside the core. */
export interface NodeNetworkDeps {
  readonly database: Database;
  readonly mempoolView: MempoolView;
  readonly mempool: Mempool | undefined;
  readonly chain: Chain;
  readonly genesis: Genesis | undefined;
  readonly key: NodeKey;
  readonly forks: Forks;
  readonly heads: HeadStatements;
  /** Whether its role and its lease let it take transactions. */
  readonly mayAccept: () => boolean;
  readonly chainHealth: SharedSubsystem;
  readonly join: NodeJoinDeps | undefined;
}

/** The network of a node. */
export interface NodeNetwork extends BookCommands, Readiness, Pick<NodeRelay, "announce" | "submit"> {
  readonly book: PeerBook;
  readonly mayFollow: MayFollow;
  readonly mainLoop: MainLoop;
  /** Serves other nodes. */
  readonly service: ReturnType<typeof createPeerService>;
  /** Why a network's only authority does not know yet whether there is a newer block; undefined once it does. */
  readonly whyUnknown: () => string | undefined;
  /**
   * Shows whether a time, now when it is left out, is too far ahead of the peers' clocks, and says why.
   */
  readonly showClock: (timeMs?: number) => string | undefined;
  /** Begins the loop, and whatever goes with it. */
  start(): void;
  /**
   * The one form of this node's own endpoint. Warns when only nodes on this machine or site can call it.
   *
   * @throws StartError when nobody can.
   */
  nameEndpoint(url: string): string;
  /** Number of the newest block of the verified peers; undefined while there is none. */
  peerBlock(): bigint | undefined;
  countPeers(): PeerCounts;
  /** How far it is, while it catches up. */
  syncProgress(): SyncProgress | undefined;
}

/** Builds the network; it does nothing before it is started. */
export async function createNodeNetwork(core: NodeCore, deps: NodeNetworkDeps): Promise<NodeNetwork> {
  const { database, mempool, mempoolView, chain, genesis, key, forks, heads, chainHealth } = deps;
  const authorities = genesis?.authorities ?? [];
  const isAuthority = authorities.includes(key.publicKey);
  const isWriter = core.config.role === "writer";
  const hasConsensus = watchConsensus(core);
  const onTaskError = createTaskErrors(core);

  const nodeBook = await openBook(core, { database, ownIdentity: key.publicKey });
  const { book, policy, pace, save } = nodeBook;
  const mayFollow = createMayFollow(core, { genesis, book });
  warnWhereOpen(core, { genesis, reads: database.read });
  const { client, siteOf } = connectPeers(core, key, nodeBook);
  const onKeyElsewhere = (endpoint: string): void => meet(endpoint);
  const nodeSync = createNodeSync(core, {
    ...{ ...nodeBook, chain, genesis, key, forks, heads, client, onKeyElsewhere, onTaskError, join: deps.join },
    isAccepting: () => readiness.isAccepting(),
  });
  const { self, dialer, readStatus, sync, join, onStatus } = nodeSync;
  const doubles = createDuplicateIdentities(Date.now);
  const meet = watchKeys(core, { self, client, book, genesis, chainHealth, doubles });
  const showClock = watchClock(core, {
    ...{ book, genesis, siteOf, chainHealth },
    earliestMs: () => (isAuthority ? Number(chain.head()?.timestampMs ?? 0) : 0),
  });
  const whyNobody = (): string | undefined =>
    isAuthority && authorities.length > 1 && !hasConsensus() ? describeNoConsensus(authorities.length) : undefined;
  const isRelaying = isWriter && !isAuthority;
  const relay = createNodeRelay(core, {
    ...{ mempool, chain, book, client, authorities, mayFollow, isRelaying, hasConsensus, onTaskError },
    followers: followersOf(core.config, genesis),
    fate: (hash) => mempoolView.fate(hash),
    whyRefused: () => forks.whyStopped() ?? core.clock.whyAhead() ?? whyNobody(),
    originOf: createOriginOf(core.config),
  });
  const mainLoop = createNodeLoop(core, {
    tasks: [
      ...nodeSync.tasks,
      ...relay.tasks,
      ...(isWriter ? [{ name: "address book", run: save }] : []),
      { name: "clock", run: () => void showClock() },
    ],
    tickDeadlineMs: 2 * peerDeadlineMs,
    onTaskError,
  });

  const whyUnknown = watchNewestBlock(core, { chain, book, words: await takeWords(core, genesis) });

  const readiness = createReadiness(core, {
    ...{ chain, book, sync, mainLoop, forks, mayAccept: deps.mayAccept, whyUnknown, hasConsensus },
    isOnlyAuthority: isAuthority && authorities.length === 1,
  });

  return {
    book,
    mayFollow,
    mainLoop,
    service: createPeerService({
      ...{ self, book, dialer, policy, pace, readStatus, onStatus, takeTransaction: relay.takeTransaction },
      ...{ challenges: createChallenges(Date.now), doubles, onKeyElsewhere },
      onError: (error) => onTaskError("relay", error),
    }),
    ...readiness,
    whyUnknown,
    showClock,
    announce: relay.announce,
    submit: relay.submit,
    start: () => startNetwork(core, { mainLoop, relay, sync, join, save, onTaskError }),
    nameEndpoint: (url) => nameEndpoint(core, nodeBook, url),
    ...createBookCommands(core, nodeBook, { dialer, client }),
    peerBlock: () => book.highestBlock(),
    countPeers: () => countPeers(nodeBook),
    syncProgress: () => sync.progress(),
  };
}

/** Begins the loop, and whatever goes with it. */
function startNetwork(
  core: NodeCore,
  {
    mainLoop,
    relay,
    sync,
    join,
    save,
    onTaskError,
  }: {
    readonly mainLoop: MainLoop;
    readonly relay: NodeRelay;
    readonly sync: Sync;
    readonly join: NodeSnapshotSync | undefined;
    readonly save: () => Promise<void>;
    readonly onTaskError: TaskErrors;
  },
): void {
  mainLoop.start();
  relay.start();
  const progress = reportProgress(core, { sync: () => sync.progress(), join: () => join?.progress() }, onTaskError);
  core.onShutdown("the main loop", async () => {
    await Promise.all([progress.stop(), sync.stop(), join?.stop(), relay.stop()]);
    await mainLoop.stop("The node is shutting down.");
    await save().catch((error: unknown) => core.log.warn({ err: error }, "The address book could not be saved"));
  });
}

/** Whether a process beside this one brings the blocks, and says that all is well with it. */
function watchConsensus({ bus }: NodeCore): () => boolean {
  let isReady = false;
  bus.on("consensusReported", (report) => {
    isReady = report.isReady;
  });
  return () => isReady;
}
