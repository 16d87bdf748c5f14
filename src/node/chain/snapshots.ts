/**
 * Snapshots that a node creates of its state, at a fixed interval of blocks. The next block waits at most 1 s for a
 * snapshot.
 */
import type { SnapshotService } from "../../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fromHex32, sha256 } from "../../base/crypto/hash.js";
import { createErrorThrottle } from "../../base/logging/error-throttle.js";
import { createBlockStore } from "../../chain/blocks/block-store.js";
import { listHeaders } from "../../chain/blocks/header-store.js";
import { exportSenders } from "../../chain/blocks/sender-store.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import type { ChainHead } from "../../chain/blocks/store-types.js";
import { decodeHeader } from "../../chain/transactions/transaction.js";
import type { Queries, ReadableDatabase } from "../../db/queries/database.js";
import { openForReading } from "../../db/open.js";
import type { Implementation } from "../../rpc/service.js";
import { encodeEntry, type Entry } from "../../snapshot/format.js";
import { buildSnapshot, type SnapshotBuildDeps } from "../../snapshot/build.js";
import { createSnapshotService, type SnapshotServiceDeps } from "../../snapshot/service.js";
import { openSnapshotStore, type SnapshotStore } from "../../snapshot/store.js";
import { exportPrograms, estimateProgramBytes } from "../../storage/changes/program-snapshot-store.js";
import { commitmentsLeaf } from "../../tree/state-leaves.js";
import { exportCommitmentTree, exportNullifiers, listLeaves } from "../../zk/snapshot-store.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Limit in milliseconds on the time that a block waits until a snapshot has a consistent read of the database. */
const maxBlockWaitMs = 1_000;

export interface Snapshots {
  /** Snapshot store; undefined on a node that creates no snapshots. */
  readonly snapshotStore: SnapshotStore | undefined;
  /**
   * Starts a snapshot after a block if one is due. Resolves once the snapshot has a consistent read, which later blocks
   * do not change, or after 1 s.
   */
  createIfDue(number: bigint): Promise<void>;
  /** Sets the source of the peers' latest block number. A node that is far behind its peers creates no snapshots. */
  compareWith(peerBlock: () => bigint | undefined): void;
}

/** Opens the snapshot store of a writer. Any other role creates no snapshots. */
export async function openSnapshots(
  { config, log, onShutdown }: Pick<NodeCore, "config" | "log" | "onShutdown">,
  { store }: { readonly store: Pick<ChainStore, "header"> },
): Promise<Snapshots> {
  const every = BigInt(config.snapshotEvery);
  if (config.role !== "writer" || every === 0n) {
    return { snapshotStore: undefined, createIfDue: () => Promise.resolve(), compareWith: () => undefined };
  }
  const stopped = new AbortController();
  const throttle = createErrorThrottle({
    log,
    level: "warn",
    fields: { subsystem: "chain" },
    message: "A snapshot of the state could not be created",
  });
  const snapshotStore = await openSnapshotStore({
    folder: join(config.dataDir, "snapshots"),
    async numberOf(header) {
      const { number } = decodeHeader(header);
      return (await store.header(number))?.hash === sha256(header) ? number : undefined;
    },
    nowMs: () => performance.now(),
    onCorrupt: (path) =>
      log.error({ subsystem: "chain" }, `The snapshot file ${path} is corrupt; the snapshot is removed`),
  });
  let database: ReadableDatabase | undefined;
  let running: Promise<void> | undefined;
  let peerBlock: () => bigint | undefined = () => undefined;
  onShutdown("the creation of snapshots", async () => {
    stopped.abort();
    await running;
    await database?.close();
  });

  /** Creates and stores a snapshot. Calls `onRead` once the snapshot has a consistent read. */
  async function createSnapshot(number: bigint, onRead: () => void): Promise<void> {
    database ??= await openForReading(config.databaseUrl);
    const folder = await snapshotStore.newFolder();
    try {
      const bytes = await database.withSnapshot(async (db) => {
        const head = await createBlockStore(db).head();
        onRead();
        // The next block was stored first, so this snapshot is skipped.
        return head?.number === number ? await writeSnapshot(db, head, { folder, signal: stopped.signal }) : undefined;
      });
      if (bytes !== undefined) {
        await snapshotStore.add(number, bytes);
        log.info({ subsystem: "chain" }, `Created a snapshot of the state after block ${number}`);
      }
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  return {
    snapshotStore,
    compareWith: (source) => void (peerBlock = source),
    async createIfDue(number) {
      const isFarBehind = (peerBlock() ?? 0n) >= number + every;
      if (number % every !== 0n || running !== undefined || isFarBehind || stopped.signal.aborted) {
        return;
      }
      await new Promise<void>((resolve) => {
        void sleep(maxBlockWaitMs, undefined, { ref: false }).then(resolve);
        running = createSnapshot(number, resolve)
          .catch((error: unknown) => (stopped.signal.aborted ? undefined : throttle.failed(error)))
          .finally(() => {
            running = undefined;
            resolve();
          });
      });
    },
  };
}

/** Creates the service, over a database, that nodes query during a snapshot sync. */
export function createNodeSnapshotService(
  db: Queries,
  deps: Pick<SnapshotServiceDeps, "snapshotStore" | "checkFollower">,
): Implementation<typeof SnapshotService> {
  return createSnapshotService({
    ...deps,
    headers: (from, count) => listHeaders(db, from, count),
    leaves: (from, count) => listLeaves(db, from, count),
  });
}

/** Writes a snapshot of the readable state, whose latest block is `head`. Returns the description of the snapshot. */
export async function writeSnapshot(
  db: Queries,
  head: ChainHead,
  { folder, signal, chunkBytes }: Pick<SnapshotBuildDeps, "folder" | "signal" | "chunkBytes">,
): Promise<Uint8Array> {
  const commitmentTree = await exportCommitmentTree(db);
  let programCount = 0;
  async function* entries(): AsyncGenerator<readonly Entry[], void> {
    for await (const batch of exportPrograms(db)) {
      programCount += batch.length;
      yield batch.map(({ leaf, program }) => ({ leaf, bytes: encodeEntry({ case: "program", value: program }) }));
    }
    for await (const batch of exportNullifiers(db)) {
      yield batch.map(({ leaf, nullifier }) => ({ leaf, bytes: encodeEntry({ case: "nullifier", value: nullifier }) }));
    }
    for await (const batch of exportSenders(db)) {
      yield batch.map(({ leaf, sender }) => ({ leaf, bytes: encodeEntry({ case: "sender", value: sender }) }));
    }
    if (commitmentTree.leafCount > 0) {
      const bytes = encodeEntry({ case: "commitments", value: commitmentTree });
      yield [{ leaf: commitmentsLeaf(commitmentTree), bytes }];
    }
  }
  const { header, signature } = head;
  return await buildSnapshot({
    ...{ folder, signal, entries: entries(), stateBytes: await estimateProgramBytes(db) },
    ...(chunkBytes !== undefined && { chunkBytes }),
    stateRoot: fromHex32(decodeHeader(header).stateRoot),
    rest: () => ({ header, signature, programCount, commitmentTree }),
  });
}
