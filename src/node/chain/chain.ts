/**
 * Chain of a node over its database, and the state that its blocks change. A writer applies blocks itself, a reader
 * follows the blocks of another node. Both therefore know when cached data is stale.
 */
import { type Chain, createChain, headerOf, type WritableChain } from "../../chain/chain.js";
import { createChainReader } from "../../chain/chain-reader.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { SignedHeaders } from "../../chain/blocks/evidence.js";
import { type Mempool, openMempool } from "../../chain/mempool/mempool.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import { readLatestNumber } from "../../chain/blocks/header-store.js";
import type { ChainHead, MempoolView } from "../../chain/blocks/store-types.js";
import type { MempoolStore } from "../../chain/blocks/mempool-store.js";
import { monitorWrites } from "../../chain/writer/write-monitor.js";
import { readWritersFile } from "../../config/input-files.js";
import type { Database } from "../../db/queries/database.js";
import { type SharedSubsystem, shareSubsystem } from "../../health/subsystems.js";
import { untilDatabaseResponds } from "../lifecycle/database-wait.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { SnapshotSyncStatus } from "./snapshot-sync-status.js";
import type { NodeLease } from "./lease.js";
import type { Snapshots } from "./snapshots.js";
import { createCheckThreads, createDocumentThread } from "./threads.js";
import { type CachedData, type ChainData, createChainData } from "./data-caches.js";
import { createTransactionExecutor, latestIn, type State } from "./transaction-executor.js";
import { startPeriodicTask } from "../../base/async/periodic-task.js";
import { InputError } from "../../base/errors/start-error.js";
import { publicReasonOf } from "../../base/errors/database-error-kind.js";
import { createErrorThrottle } from "../../base/logging/error-throttle.js";
import { parseVerificationKey, type VerificationKey } from "../../zk/groth16.js";
import { createZkThreads } from "../../zk/worker-pool.js";
import { createZkChanges } from "../../zk/write.js";

/** Interval in milliseconds at which a reader polls for a new block. */
const followEveryMs = 500;
/** Interval in milliseconds at which expired transactions are removed from the mempool. */
const sweepEveryMs = 1_000;

/** Dependencies of a node's chain besides the core. */
export interface NodeChainDeps {
  readonly database: Database;
  readonly store: ChainStore<State>;
  readonly genesis: Genesis | undefined;
  /** Latest block; undefined while there is none. */
  readonly head: ChainHead | undefined;
  readonly headers: SignedHeaders;
  /** Writer lease; undefined for a node that does not write. */
  readonly lease: NodeLease | undefined;
  readonly syncStatus: SnapshotSyncStatus;
  readonly snapshots: Pick<Snapshots, "createIfDue">;
}

/** Chain of a node and the state that its blocks change. */
export interface NodeChain {
  readonly chain: Chain;
  /** Same chain, on a node that writes; undefined on other nodes. */
  readonly written: WritableChain | undefined;
  readonly pool: NodePool;
  readonly data: ChainData;
}

/** Mempool of a node that writes, and reads of it: in memory on a writer, in the database on other nodes. */
export interface NodePool {
  readonly mempool: Mempool | undefined;
  readonly view: MempoolView;
}

/** Dependencies of a chain that another process writes. */
export type FollowedChainDeps = Pick<NodeChainDeps, "database" | "store" | "head" | "syncStatus">;

type WriterCore = Pick<
  NodeCore,
  "bus" | "clock" | "config" | "corruption" | "lifecycle" | "log" | "memory" | "onShutdown" | "subsystems"
>;

/** Creates the chain of a node: a writer applies blocks, any other role follows them. */
export async function createNodeChain(core: WriterCore, deps: NodeChainDeps): Promise<NodeChain> {
  if (core.config.role !== "writer") {
    return createFollowedChain(core, deps);
  }
  const cached = createChainData(core, deps);
  return { ...(await createWriterChain(core, deps, cached)), data: cached.data };
}

/** Creates a chain that another process writes to the same database. */
export function createFollowedChain(
  core: Pick<NodeCore, "bus" | "corruption" | "log" | "memory" | "onShutdown">,
  deps: FollowedChainDeps,
): NodeChain {
  const cached = createChainData(core, deps);
  return {
    chain: createReaderChain(core, deps, cached),
    written: undefined,
    pool: { mempool: undefined, view: deps.store },
    data: cached.data,
  };
}

/** Creates the chain of a writer, with the threads and the mempool that it needs. */
async function createWriterChain(
  core: WriterCore,
  deps: NodeChainDeps,
  cached: CachedData,
): Promise<Omit<NodeChain, "data">> {
  const { bus, log, memory, onShutdown } = core;
  const { database, store, genesis, head, headers } = deps;
  let problem: string | undefined;
  const monitored = monitorWrites(store, (error) => {
    const reason = error === undefined ? undefined : publicReasonOf(error);
    if (reason !== problem) {
      problem = reason;
      bus.emit("writesChanged", { problem });
    }
  });
  onShutdown("the write monitor", () => monitored.stop());
  const workerPool = createZkThreads(memory.proofThreads);
  onShutdown("the proof threads", () => workerPool.stop());
  const zk = createZkChanges({
    latest: latestIn(database.read),
    workerPool,
    verificationKey: genesis && readVerificationKey(genesis.text),
    authorities: genesis?.authorities ?? [],
  });
  const mempool = await openNodeMempool(core, monitored.store, genesis);
  const checks = createCheckThreads(memory.checks);
  onShutdown("the check threads", () => checks.stop());
  const documents = createDocumentThread(memory.documentHeapMib);
  onShutdown("the document thread", () => documents.stop());
  const chain = createChain({
    checkOffThread: checks.check,
    store: monitored.store,
    mempool,
    genesis,
    head,
    executor: createTransactionExecutor(zk, memory.documentHeapMib === 0 ? undefined : documents.build),
    onNotApplied: (signed) => headers.addReceived(signed),
    onApplied: (block) => {
      headers.addApplied(headerOf(block));
      cached.invalidateChanged(block);
      bus.emit("blockApplied", { number: block.header.number });
    },
    beforeNext: (number) => deps.snapshots.createIfDue(number),
    onUnexpected: (error, hash) =>
      log.error(
        { subsystem: "chain", err: error, transaction: hash },
        "A transaction is rejected because of an unexpected error",
      ),
    nowMs: Date.now,
  });
  deps.lease?.renewBy(() => chain.confirm());
  database.allowStandbyReads({
    isCurrent: async (rows) => isAtLeast(await readLatestNumber(rows), chain.head()),
    onMoved: () => cached.data.invalidateAll(),
  });
  return { chain, written: chain, pool: { mempool, view: mempool } };
}

/** Returns true if there is a head, and a database with this latest block has it. */
function isAtLeast(latest: bigint | undefined, head: ChainHead | undefined): boolean {
  return latest !== undefined && head !== undefined && latest >= head.number;
}

/** Opens the mempool, and periodically removes expired transactions from it. */
async function openNodeMempool(
  core: WriterCore,
  store: ChainStore<State>,
  genesis: Genesis | undefined,
): Promise<Mempool> {
  const { bus, clock, config, log, onShutdown } = core;
  const throttle = createErrorThrottle({
    log,
    level: "warn",
    fields: { subsystem: "chain" },
    message: "The mempool could not be stored; retrying",
    recoveryMessage: "The mempool is stored again",
  });
  const onError = (error: unknown): void => throttle.failed(error);
  const remove: MempoolStore["remove"] = async (removed) => {
    await store.mempool.remove(removed);
    throttle.succeeded();
  };
  const mayWrite = await readWriters(config, genesis);
  const open = (): Promise<Mempool> =>
    openMempool({
      store: { ...store, mempool: { ...store.mempool, remove } },
      rates: {
        bytes: config.senderBytesPerMinute,
        programs: config.senderProgramsPerMinute,
        leaves: config.senderLeavesPerMinute,
      },
      mayWrite,
      nowMs: Date.now,
      monotonicMs: () => performance.now(),
      onRejected: (rejection) => bus.emit("transactionRejected", rejection),
      onError,
    });
  const mempool = await untilDatabaseResponds(core, open);
  // With a clock that is ahead, transactions would expire too early.
  const sweep = async (): Promise<void> => (clock.whyAhead() === undefined ? mempool.sweep() : undefined);
  const sweeps = startPeriodicTask(sweep, sweepEveryMs, onError);
  onShutdown("the mempool cleanup", () => sweeps.stop());
  return mempool;
}

/**
 * Returns a predicate for the senders that may write through this node. If `writers` is not "open", these are the
 * authorities, the writers of the genesis and those of the writers file.
 */
async function readWriters(
  { writers, writersFile }: NodeCore["config"],
  genesis: Genesis | undefined,
): Promise<(sender: string) => boolean> {
  if (writers === "open") {
    return () => true;
  }
  const fromFile = writersFile === undefined ? [] : await readWritersFile(writersFile);
  const listed = new Set([...(genesis?.authorities ?? []), ...(genesis?.writers ?? []), ...fromFile]);
  return (sender) => listed.has(sender);
}

/** Creates the chain of a node that polls the database for the blocks of a writer. */
function createReaderChain(
  { bus, log, onShutdown }: Pick<NodeCore, "bus" | "log" | "onShutdown">,
  { store, head, syncStatus }: FollowedChainDeps,
  cached: CachedData,
): Chain {
  const throttle = createErrorThrottle({
    log,
    level: "warn",
    fields: { subsystem: "chain" },
    message: "The latest block cannot be read",
    recoveryMessage: "The latest block can be read again",
  });
  const readHead = async (): Promise<ChainHead | undefined> => {
    const found = await store.head();
    throttle.succeeded();
    return found;
  };
  const reader = createChainReader({
    ...{ store: { ...store, head: readHead }, head, pollIntervalMs: followEveryMs },
    onApplied: (block) => cached.invalidateChanged(block),
    onReset(hasState) {
      syncStatus.set(!hasState);
      cached.data.invalidateAll();
    },
    onHeadChanged: (isReset) => bus.emit("headFound", { isReset }),
    onError: (error) => throttle.failed(error),
  });
  bus.on("blockReported", () => reader.now());
  onShutdown("polling for new blocks", () => reader.stop());
  return reader;
}

export const describeDisk = (code: string): string => `The disk of the database cannot be read (${code}).`;

/** Combines the reports of the boot, the database and the external consensus process into the health of the chain. */
export function watchChainHealth({
  subsystems,
  bus,
  log,
}: Pick<NodeCore, "bus" | "log" | "subsystems">): SharedSubsystem {
  const shared = shareSubsystem(subsystems, "chain");
  bus.on("writesChanged", ({ problem }) => {
    if (problem === undefined) {
      log.info({ subsystem: "chain" }, "The database accepts writes again");
    }
    shared.report("database", problem && `The database accepts no writes (${problem}).`);
  });
  bus.on("diskChanged", ({ part, problem }) => {
    if (problem === undefined) {
      log.info({ subsystem: "chain" }, "The disk of the database can be read again");
    }
    shared.report(`disk of the ${part}`, problem && describeDisk(problem));
  });
  bus.on("corruptionChanged", ({ message }) => {
    if (message === undefined) {
      log.info({ subsystem: "chain" }, "The corrupt data in the database is correct again");
    }
    shared.report("stored data", message);
  });
  bus.on("consensusReported", ({ error }) => shared.report("consensus", error));
  return shared;
}

/**
 * Returns the verification key of a genesis, its member `zk.verificationKey`; undefined if there is none.
 *
 * @throws InputError if the key is invalid.
 */
function readVerificationKey(genesisText: string): VerificationKey | undefined {
  const { zk } = JSON.parse(genesisText) as { readonly zk?: { readonly verificationKey?: unknown } };
  if (zk?.verificationKey === undefined) {
    return undefined;
  }
  try {
    return parseVerificationKey(zk.verificationKey);
  } catch (error) {
    throw new InputError(`The genesis is invalid at zk.verificationKey. ${(error as Error).message}`);
  }
}
