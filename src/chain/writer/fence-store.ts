/**
 * Write fence: rejects every write of a node that no longer holds the writer lease, or whose database files were moved.
 * Such a node also acknowledges nothing.
 */
import type { Database, DatabaseTransaction, Queries } from "../../db/queries/database.js";
import { FencedError } from "../blocks/store-types.js";
import {
  prepareWrite,
  type HeldLease,
  renewLease,
  renewEveryMs,
  leaseMs,
  readEpoch,
  lockLease,
} from "./writer-lease-store.js";

/** Runs the work of a database transaction, and throws a FencedError if its changes must not be stored. */
export interface Fence {
  /** Fences transactions of blocks. While one runs, no other node can start one or acquire the lease. */
  readonly blocks: <T>(db: DatabaseTransaction, work: () => Promise<T>) => Promise<T>;
  /** Fences transactions of the mempool, which do not wait for blocks. */
  readonly mempool: <T>(db: Queries, work: () => Promise<T>) => Promise<T>;
}

/** Fence that permits every write, for databases that no other node can access. */
export const noFence: Fence = { blocks: (_, work) => work(), mempool: (_, work) => work() };

export interface FenceDeps {
  /** Lease of this node. */
  readonly held: HeldLease;
  readonly files: Database["files"];
  /** Called with the error of each rejected write, and with undefined when a write of a block is permitted. */
  readonly onOutcome: (error: FencedError | undefined) => void;
}

/** Creates the fence that checks the writer lease. */
export function createFence({ held, files, onOutcome }: FenceDeps) {
  /** Running transaction of a block, which has renewed the lease; at most one runs at a time. */
  let running: DatabaseTransaction | undefined;

  /** Throws a FencedError unless this node holds the lease. */
  async function checkLease(db: Queries, isHeld: Promise<boolean>): Promise<void> {
    if (await isHeld) {
      return;
    }
    const epoch = await readEpoch(db);
    const message =
      epoch < held.epoch
        ? `The database was reset to an earlier state: its writer lease has epoch ${epoch}, and this node's has ${held.epoch}. ` +
          "The node does not write; stop it, and check that no block is missing."
        : "Another node writes to the database now, so this node no longer produces or applies blocks or accepts transactions.";
    throw new FencedError("lease", message);
  }

  /** Throws a FencedError if a database file was moved. Runs right before the commit, which would be lost. */
  async function checkFiles(): Promise<void> {
    const lost = await files?.findLostFile();
    if (lost !== undefined) {
      const name = lost.slice(lost.lastIndexOf("/") + 1);
      throw new FencedError(
        "files",
        `The file ${name} was moved or replaced while the node had it open; the node stores nothing until it is back.`,
      );
    }
  }

  async function reportRejection<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof FencedError) {
        onOutcome(error);
      }
      throw error;
    }
  }

  const fence: Fence = {
    blocks: (db, work) =>
      reportRejection(async () => {
        const startedMs = performance.now();
        await checkLease(db, renewLease(db, held));
        running = db;
        const heartbeat = setInterval(() => preventIdleEnd(db), renewEveryMs);
        try {
          const result = await work();
          if (performance.now() - startedMs > renewEveryMs) {
            await checkLease(db, renewLease(db, held));
          }
          await checkFiles();
          onOutcome(undefined);
          return result;
        } finally {
          clearInterval(heartbeat);
          running = undefined;
        }
      }),
    mempool: (db, work) =>
      reportRejection(async () => {
        // The mempool file of an embedded engine has no lease; the lock on both files protects it.
        if (files === undefined) {
          await checkLease(db, lockLease(db, held));
        }
        const result = await work();
        await checkFiles();
        return result;
      }),
  };
  return {
    ...fence,
    /**
     * Returns true while a running transaction protects the lease. The transaction has renewed the lease, so no node can
     * acquire it before the transaction ends. Returns false once a query has stalled for the duration of the lease.
     */
    isHolding: () => running !== undefined && running.stalledMs() < leaseMs,
  };
}

/**
 * Sends a statement if no query of the transaction is in flight. The server ends a transaction that is idle for 10 s,
 * because its process may hang. Computing the documents of a block may take longer.
 */
function preventIdleEnd(db: DatabaseTransaction): void {
  if (db.stalledMs() === 0) {
    // An error ends the transaction, so the next query of the work reports it.
    prepareWrite(db).catch(() => undefined);
  }
}
