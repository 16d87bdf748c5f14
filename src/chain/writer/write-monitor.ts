/**
 * Monitor of database writes. Counting pending transactions is not a sufficient check: reads may succeed while writes
 * fail, for example on a full disk or behind a lock of another process. While writes to a part of the database fail,
 * the monitor periodically attempts a write and rolls it back. The node thus detects recovery before a client does.
 *
 * A write that waited too long for other writes of this node is no error: the database is busy, but accepts writes. A
 * lock of another process counts as an error once it has been held for a while.
 */
import { databaseErrorKindOf, markDatabaseError } from "../../base/errors/database-error-kind.js";
import type { ChainStore } from "../blocks/store.js";
import { FencedError } from "../blocks/store-types.js";

/** Delay in milliseconds between write attempts after a failure. */
const retryEveryMs = 1_000;
/** Time in milliseconds after which a lock of another process counts as a database that rejects writes. */
const lockedForMs = 5_000;

/** Part of the database. Parts are monitored separately, because one may accept writes while another does not. */
interface Part {
  tryWrite(): Promise<void>;
  isFailing: boolean;
  /** Time since which a lock blocks writes; undefined if none does. */
  lockedSinceMs: number | undefined;
  /** Timer of the next write attempt; undefined if none is scheduled or in progress. */
  timer: NodeJS.Timeout | undefined;
}

/**
 * Wraps the writes of a store in a monitor.
 *
 * @param onChange called with the error of each failed write, and with undefined when writes succeed again.
 */
export function monitorWrites<State>(store: ChainStore<State>, onChange: (error: unknown) => void) {
  const idle = { isFailing: false, lockedSinceMs: undefined, timer: undefined };
  const blocks: Part = { ...idle, tryWrite: () => store.tryWrite() };
  const mempool: Part = { ...idle, tryWrite: () => store.mempool.tryWrite() };
  let isStopped = false;

  const isAnyFailing = (): boolean => blocks.isFailing || mempool.isFailing;

  async function monitor<T>(part: Part, write: () => Promise<T>): Promise<T> {
    try {
      const result = await write();
      // A small write may succeed while large ones fail. Recovery is therefore detected by a write attempt only.
      if (!part.isFailing) {
        update(part, undefined);
      }
      return result;
    } catch (error) {
      record(part, error);
      throw error;
    }
  }

  /** Records a failed write. Ignores non-database errors and queueing behind other writes of this node. */
  function record(part: Part, error: unknown): void {
    if (error instanceof FencedError) {
      // The database responds, and the fence reports its own errors.
      update(part, undefined);
      return;
    }
    const kind = databaseErrorKindOf(error);
    if (kind === "locked") {
      part.lockedSinceMs ??= performance.now();
      if (!isAnyFailing() && performance.now() - part.lockedSinceMs < lockedForMs) {
        schedule(part);
        return;
      }
      markDatabaseError(error as object);
    }
    if (kind === "locked" || kind === "unavailable" || kind === "unreadable") {
      update(part, error);
    }
  }

  /** Sets the state of a part: failing with an error, or working if the error is undefined. */
  function update(part: Part, error: unknown): void {
    const wasFailing = isAnyFailing();
    part.isFailing = error !== undefined;
    if (part.isFailing) {
      schedule(part);
    } else {
      clearTimeout(part.timer);
      part.timer = undefined;
      part.lockedSinceMs = undefined;
    }
    if (part.isFailing || (wasFailing && !isAnyFailing())) {
      onChange(error);
    }
  }

  function schedule(part: Part): void {
    clearTimeout(part.timer);
    part.timer = isStopped ? undefined : setTimeout(() => void retry(part), retryEveryMs);
  }

  /** Attempts a write. After a failure, schedules another attempt, whatever the error. */
  async function retry(part: Part): Promise<void> {
    try {
      await part.tryWrite();
      update(part, undefined);
    } catch (error) {
      record(part, error);
      if (part.timer !== undefined) {
        schedule(part);
      }
    }
  }

  const monitored: ChainStore<State> = {
    ...store,
    mempool: {
      ...store.mempool,
      insertPending: (entry, bytes) => monitor(mempool, () => store.mempool.insertPending(entry, bytes)),
      remove: (removals) => monitor(mempool, () => store.mempool.remove(removals)),
    },
    write: (latest, work) => monitor(blocks, () => store.write(latest, work)),
  };
  return {
    store: monitored,
    /** Stops the write attempts. */
    stop(): void {
      isStopped = true;
      clearTimeout(blocks.timer);
      clearTimeout(mempool.timer);
    },
  };
}
