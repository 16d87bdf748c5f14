/** Snapshot sync of a new node, which downloads the state instead of applying each block if there are many blocks. */
import type { WritableChain } from "../../chain/chain.js";
import type { Fence } from "../../chain/writer/fence-store.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import type { Database } from "../../db/queries/database.js";
import type { PeerClient } from "../../peers/handshake/client.js";
import type { PeerBook } from "../../peers/address-book/peer-book.js";
import { peerReasons } from "../../peers/address-book/peer-reasons.js";
import { CallError } from "../../rpc/channel.js";
import { RpcError } from "../../rpc/errors.js";
import { createSnapshotSync } from "../../snapshot/sync.js";
import { createZkThreads } from "../../zk/worker-pool.js";
import type { NodeCore } from "../lifecycle/core.js";
import { createSnapshotTarget } from "./snapshot-target.js";
import type { SnapshotSyncStatus } from "../chain/snapshot-sync-status.js";

/** Number of blocks from which on a node syncs from a snapshot instead of applying each block. */
const worthItBlocks = 10_000n;

/** Dependencies of the snapshot sync. */
export interface NodeSnapshotSyncDeps {
  readonly database: Database;
  readonly store: Pick<ChainStore, "head">;
  readonly genesis: Genesis;
  readonly fence: Fence;
  readonly chain: WritableChain;
  readonly syncStatus: SnapshotSyncStatus;
  /** Clears all cached state. */
  readonly invalidateAll: () => void;
}

interface SnapshotSyncPeers {
  readonly book: Pick<PeerBook, "healthy" | "highestBlock" | "penalize">;
  readonly client: PeerClient;
  readonly onError: (error: unknown) => void;
  readonly onEnd: () => void;
}

export type NodeSnapshotSync = ReturnType<typeof createNodeSnapshotSync>;

export function createNodeSnapshotSync(
  core: Pick<NodeCore, "bus" | "config" | "log" | "memory">,
  deps: NodeSnapshotSyncDeps,
  { book, client, onError, onEnd }: SnapshotSyncPeers,
) {
  const { config, log, memory } = core;
  const { database, store, genesis, fence, chain, syncStatus, invalidateAll } = deps;
  const stopped = new AbortController();
  const workerPool = createZkThreads(memory.proofThreads);
  const minBlock = config.sync === "auto" ? worthItBlocks : 1n;
  const target = createSnapshotTarget({
    ...{ database, genesis, minBlock, foldAll: workerPool.foldAll },
    transaction: (work) => database.transaction((db) => fence.blocks(db, () => work(db))),
  });
  const logLine = (line: string): void => log.info({ subsystem: "main_loop", public: true }, line);
  let hasLoggedNone = false;
  let noPeerHasSnapshot = false;
  let running: Promise<void> | undefined;

  /** Updates the status of the state, which is unavailable while a snapshot is stored. */
  async function setStateAvailable(isAvailable: boolean): Promise<void> {
    syncStatus.set(!isAvailable);
    invalidateAll();
    await chain.replaceHead(isAvailable ? await store.head() : undefined);
  }

  const snapshotSync = createSnapshotSync({
    peers: {
      list: () => book.healthy().map(({ endpoint }) => endpoint),
      stream: (...call) => client.stream(...call),
      drop(endpoint, cause, reason) {
        log.warn({ subsystem: "main_loop", endpoint }, `Dropped the peer ${endpoint}: ${reason}`);
        if (cause === "dishonest") {
          book.penalize(endpoint, peerReasons.invalidData(reason));
        }
      },
      isUnanswered: (error) => error instanceof CallError || (error instanceof RpcError && !error.kind.transient),
    },
    target: {
      ...target,
      async start(...snapshot) {
        await setStateAvailable(false);
        await target.start(...snapshot);
      },
      async abandon() {
        await target.abandon();
        await setStateAvailable(true);
      },
    },
    nowMs: () => performance.now(),
    onChosen(block, count, isResumed) {
      const have = count === 1 ? "peer has" : "peers have";
      logLine(`${isResumed ? "Resuming" : "Loading"} the snapshot of block ${block}, which ${count} ${have}`);
    },
  });

  async function attempt(): Promise<void> {
    if (config.sync === "blocks") {
      // An earlier run, with another option, may have stored a part of a snapshot.
      await target.abandon();
      await setStateAvailable(true);
      return;
    }
    const outcome = await snapshotSync.attempt(stopped.signal);
    if (outcome === "completed") {
      await setStateAvailable(true);
      const { number } = chain.head()!;
      logLine(`Loaded the state after block ${number} from a snapshot`);
      core.bus.emit("blockApplied", { number });
    } else if (outcome === "none") {
      logNone();
      noPeerHasSnapshot = config.sync === "auto";
    }
  }

  function logNone(): void {
    if (!hasLoggedNone) {
      hasLoggedNone = true;
      log.warn(
        { subsystem: "main_loop" },
        config.sync === "auto"
          ? "No peer has a snapshot; the node fetches and applies all blocks instead"
          : "No peer has a snapshot; retrying (--sync blocks fetches all blocks instead)",
      );
    }
  }

  /** Marks the state as available again if the attempt stored nothing. */
  async function restoreState(): Promise<void> {
    if (syncStatus.isRunning() && (await target.state()) === undefined) {
      await setStateAvailable(true);
    }
  }

  return {
    /** Returns true if the node should complete a snapshot sync before it applies blocks, as far as is known now. */
    isRequired(): boolean {
      if (running !== undefined || syncStatus.isRunning()) {
        return true;
      }
      const highest = book.highestBlock() ?? 0n;
      return config.sync !== "blocks" && !noPeerHasSnapshot && chain.head()?.number === 0n && highest >= minBlock;
    },
    /** Starts an attempt unless one is in progress. */
    kick(): void {
      if (running === undefined && !stopped.signal.aborted) {
        running = attempt()
          .catch(onError)
          .then(restoreState)
          .catch(onError)
          .finally(() => {
            running = undefined;
            onEnd();
          });
      }
    },
    progress: () => snapshotSync.progress(),
    async stop(): Promise<void> {
      stopped.abort();
      await running;
      await workerPool.stop();
    },
  };
}
