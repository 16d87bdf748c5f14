/**
 * The fence around what a node stores: one that is not the writer of its database any more, or whose files are not where
 * they were, stores nothing, and so acknowledges nothing.
 */
import type { Database, DatabasePart, DatabaseTransaction, Queries } from "../../db/queries/database.js";
import { FencedError } from "../blocks/fenced-error.js";
import { type HeldLease, holdLease, leaseMs, readEpoch, shareLease } from "./writer-lease-store.js";

/** Runs work inside of transactions, whose changes it lets be stored or not. */
export interface Fence {
  /** Of blocks: while one goes on, nobody else begins another or takes the lease. */
  readonly blocks: <T>(db: DatabaseTransaction, work: () => Promise<T>) => Promise<T>;
  /** Of the mempool, which does not wait for blocks. */
  readonly mempool: <T>(db: Queries, work: () => Promise<T>) => Promise<T>;
}

/** The fence of a lease. */
export interface LeaseFence extends Fence {
  /**
   * Whether a transaction keeps the lease, however long it takes: it has renewed it, so that nobody takes it before its
   * end, and the database answers it.
   */
  isHolding(): boolean;
}

/** Keeps nobody out: for databases that nobody else can have. */
export const noFence: Fence = { blocks: (_, work) => work(), mempool: (_, work) => work() };

/** What a fence is made of. */
export interface FenceDeps {
  readonly held: HeldLease;
  readonly files: Database["files"];
  /** Hears why nothing was let through; undefined when blocks could be stored. */
  readonly onOutcome: (trouble: FencedError | undefined) => void;
}

/** How old the renewal at the beginning of a transaction may be at its end. */
const renewAfterMs = leaseMs / 3;

export function createFence({ held, files, onOutcome }: FenceDeps): LeaseFence {
  /** The transaction of blocks that has renewed the lease. There is one at a time. */
  let holder: DatabaseTransaction | undefined;

  async function checkLease(db: Queries, isHeld: Promise<boolean>): Promise<void> {
    if (await isHeld) {
      return;
    }
    const epoch = await readEpoch(db);
    throw epoch < held.epoch
      ? new FencedError(
          "lease",
          `The database has gone back: its lease is that of take-over ${epoch}, and this node's of ${held.epoch}. Nothing is ` +
            "written; stop the node, and make sure that no block is missing.",
        )
      : new FencedError(
          "lease",
          "Another node writes to the database now; this one makes, applies and takes nothing any more.",
        );
  }

  /** As late as can be: what is committed to files that are gone is lost. */
  async function checkFiles(): Promise<void> {
    const lost = await files?.lost();
    if (lost !== undefined) {
      const name = lost.slice(lost.lastIndexOf("/") + 1);
      throw new FencedError(
        "files",
        `The file ${name} is not where the node opened it, or is another one now; nothing is stored until it is back.`,
      );
    }
  }

  async function told<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof FencedError) {
        onOutcome(error);
      }
      throw error;
    }
  }

  return {
    blocks: (db, work) =>
      told(async () => {
        const begunMs = performance.now();
        await checkLease(db, holdLease(db, held));
        holder = db;
        try {
          const result = await work();
          if (performance.now() - begunMs > renewAfterMs) {
            await checkLease(db, holdLease(db, held));
          }
          await checkFiles();
          onOutcome(undefined);
          return result;
        } finally {
          holder = undefined;
        }
      }),
    mempool: (db, work) =>
      told(async () => {
        // The mempool's file has no lease; who has it has the lock of both files.
        if (files === undefined) {
          await checkLease(db, shareLease(db, held));
        }
        const result = await work();
        await checkFiles();
        return result;
      }),
    isHolding: () => holder !== undefined && holder.stalledMs() < leaseMs,
  };
}

/** A part of a database whose transactions have a fence around them. */
export function fencePart(part: DatabasePart, fence: Fence["mempool"]): DatabasePart {
  return { ...part, transaction: (work) => part.transaction((db) => fence(db, () => work(db))) };
}
