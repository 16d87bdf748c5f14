/**
 * Watches whether the database takes writes. Reads may well go on where it does not, on a full disk or behind somebody
 * else's lock, so the pending count alone does not tell. While writes to a part of it fail, one that is taken back is
 * tried again and again, so that the trouble is known to be over before anybody has to find out. Who waited too long for
 * others of this node met no trouble: the database is busy, and takes writes. A lock of somebody else is trouble once it
 * has been held for a while.
 */
import { databaseErrorKindOf, markDatabaseError } from "../../base/errors/database-error-kind.js";
import { FencedError } from "../blocks/fenced-error.js";
import type { ChainStore } from "../blocks/store.js";

/** What the watch needs. */
export interface WriteWatchDeps<State> {
  readonly store: ChainStore<State>;
  /** How long after a failed write the next one is tried. */
  readonly retryEveryMs: number;
  /** How long a lock may keep writes out before that is trouble. */
  readonly lockedForMs: number;
  readonly nowMs: () => number;
  /** Hears when writes begin to fail (why) and when they go through again (undefined). */
  readonly onChange: (trouble: unknown) => void;
}

/** A store whose writes are watched. */
export interface MonitoredStore<State> {
  readonly store: ChainStore<State>;
  /** Ends the tries. */
  stop(): void;
}

/** A part of the database: that writes to another one go through says nothing of it. */
interface Part {
  readonly store: { tryWrite(): Promise<void> };
  /** Since when a lock keeps writes out; undefined while none does. */
  lockedSinceMs: number | undefined;
}

/** Puts a watch before the writes of a store. */
export function monitorWrites<State>(deps: WriteWatchDeps<State>): MonitoredStore<State> {
  const { store } = deps;
  const { watchPart, stop } = createWatch(deps);
  const watchBlocks = watchPart(store);
  const watchMempool = watchPart(store.mempool);
  return {
    store: {
      ...store,
      mempool: {
        ...store.mempool,
        insertPending: (...given) => watchMempool(() => store.mempool.insertPending(...given)),
        settle: (settled) => watchMempool(() => store.mempool.settle(settled)),
      },
      write: (newest, work) => watchBlocks(() => store.write(newest, work)),
    },
    stop,
  };
}

/** Watches writes to parts of the database. */
function createWatch({ retryEveryMs, lockedForMs, nowMs, onChange }: Omit<WriteWatchDeps<never>, "store">) {
  const troubled = new Set<Part>();
  const tries = createTries(retryEveryMs, (part) => void retry(part));

  function watchPart(partStore: Part["store"]) {
    const part: Part = { store: partStore, lockedSinceMs: undefined };
    return async <T>(write: () => Promise<T>): Promise<T> => {
      try {
        const result = await write();
        // A small write may go through where the next large one does not: while there is trouble, the tries say when it ends.
        if (!troubled.has(part)) {
          settle(part, undefined);
        }
        return result;
      } catch (error) {
        record(part, error);
        throw error;
      }
    };
  }

  /** Other errors than those of the database, and waiting for others of this node, say nothing of it. */
  function record(part: Part, error: unknown): void {
    if (error instanceof FencedError) {
      // The database answers, and the fence tells of itself.
      settle(part, undefined);
      return;
    }
    const trouble = databaseErrorKindOf(error);
    if (trouble === "locked") {
      part.lockedSinceMs ??= nowMs();
      if (troubled.size === 0 && nowMs() - part.lockedSinceMs < lockedForMs) {
        tries.plan(part);
        return;
      }
      markDatabaseError(error as object);
    }
    if (trouble === "locked" || trouble === "unavailable") {
      settle(part, error);
    }
  }

  function settle(part: Part, trouble: unknown): void {
    const wasTroubled = troubled.size > 0;
    tries.end(part);
    if (trouble === undefined) {
      part.lockedSinceMs = undefined;
      troubled.delete(part);
    } else {
      troubled.add(part);
      tries.plan(part);
    }
    if (troubled.size > 0 !== wasTroubled) {
      onChange(trouble);
    }
  }

  /** Whatever it ends with, the next one comes, until one goes through. */
  async function retry(part: Part): Promise<void> {
    try {
      await part.store.tryWrite();
      settle(part, undefined);
    } catch (error) {
      record(part, error);
      if (tries.areOn(part)) {
        tries.plan(part);
      }
    }
  }

  return { watchPart, stop: () => tries.stop() };
}

/** The next try of each part to whose writes something was the matter. */
function createTries(everyMs: number, work: (part: Part) => void) {
  const timers = new Map<Part, NodeJS.Timeout>();
  let isStopped = false;
  return {
    /** A try is planned, or under way. */
    areOn: (part: Part): boolean => timers.has(part),
    plan(part: Part): void {
      if (!isStopped) {
        clearTimeout(timers.get(part));
        timers.set(
          part,
          setTimeout(() => work(part), everyMs),
        );
      }
    },
    end(part: Part): void {
      clearTimeout(timers.get(part));
      timers.delete(part);
    },
    /** There are no more of them. */
    stop(): void {
      isStopped = true;
      timers.forEach((timer) => clearTimeout(timer));
    },
  };
}
