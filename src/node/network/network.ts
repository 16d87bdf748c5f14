/**
 * Network of a node. Its parts are:
 *
 * - the address book (network-book),
 * - the sync with peers (network-sync),
 * - the relay of transactions to block producers (network-relay),
 * - the readiness for transactions (network-readiness),
 * - the main loop that runs all of them (network-loop).
 */
import { createChallenges } from "../../peers/handshake/challenges.js";
import { createDuplicateIdentities } from "../../peers/handshake/duplicate-keys.js";
import { createPeerService } from "../../peers/service.js";
import type { NodeCore } from "../lifecycle/core.js";
import { createFollowerCheck } from "./follower-check.js";
import { createMayFollow, warnOfOpenPrograms } from "./followers.js";
import { countPeers, createBookCommands, nameEndpoint, type NetworkParts, openBook } from "./network-book.js";
import { createNodeLoop, createTaskErrors, reportProgress } from "./network-loop.js";
import { createProductionGuard, createReadiness } from "./network-readiness.js";
import { createNodeRelay } from "./network-relay.js";
import { monitorClock, monitorKeys } from "./network-monitors.js";
import { describeNoConsensus } from "../chain/block-production.js";
import { connectPeers, createNodeSync, peerDeadlineMs } from "./network-sync.js";

export type NodeNetwork = Awaited<ReturnType<typeof createNodeNetwork>>;

/** Creates the network without starting it. */
export async function createNodeNetwork(core: NodeCore, parts: NetworkParts) {
  const { database, chain, genesis, key, forks } = parts;
  const authorities = genesis?.authorities ?? [];
  const isAuthority = authorities.includes(key.publicKey);
  const isWriter = core.config.role === "writer";
  const { onTaskError, onTick } = createTaskErrors(core);
  /** True while an external consensus process reports that it is ready to supply blocks. */
  let isConsensusReady = false;
  core.bus.on("consensusReported", ({ isReady }) => {
    isConsensusReady = isReady;
  });
  const hasConsensus = (): boolean => isConsensusReady;

  const nodeBook = await openBook(core, parts);
  const { book, policy, dialRateLimit, save } = nodeBook;
  const mayFollow = createMayFollow(core, { genesis, book });
  warnOfOpenPrograms(core, { genesis, reads: database.read });
  const { client, siteOf } = connectPeers(core, key, nodeBook);
  const onKeyElsewhere = (endpoint: string): void => reportKeyUse(endpoint);
  const isAccepting = (): boolean => readiness.isAccepting();
  const nodeSync = createNodeSync(core, parts, { ...nodeBook, client, onKeyElsewhere, onTaskError, isAccepting });
  const { self, dialer, readStatus, sync, snapshotSync } = nodeSync;
  const duplicates = createDuplicateIdentities(Date.now);
  const reportKeyUse = monitorKeys(core, parts, book, { self, client, duplicates });
  const checkClock = monitorClock(core, parts, book, siteOf, () =>
    isAuthority ? Number(chain.head()?.timestampMs ?? 0) : 0,
  );
  const whyNoTarget = (): string | undefined =>
    isAuthority && authorities.length > 1 && !hasConsensus() ? describeNoConsensus(authorities.length) : undefined;
  const relay = createNodeRelay(core, parts, {
    ...{ book, client, authorities, mayFollow, hasConsensus, onTaskError, isRelaying: isWriter && !isAuthority },
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
    onTick,
  });
  const whyUnknown = await createProductionGuard(core, parts, book);
  const readiness = createReadiness(core, parts, {
    ...{ book, sync, mainLoop, whyUnknown, hasConsensus },
    isOnlyAuthority: isAuthority && authorities.length === 1,
  });

  return {
    checkFollower: createFollowerCheck(core, { mayFollow, book }),
    ...{ book, mayFollow, mainLoop, readiness, isSynced: readiness.isSynced, whyUnknown, checkClock },
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
