/**
 * Monitor of database writes. Counting pending transactions is not a sufficient check: reads may succeed while writes
 * fail, for example on a full disk or behind a lock of another process. While writes to a part of the database fail,
 * the monitor periodically attempts a write and rolls it back. The node thus detects recovery before a client does.
 *
 * A write that waited too long for other writes of this node is no error: the database is busy, but accepts writes. A
 * lock of another process counts as an error once it has been held for a while.
 */
import { databaseErrorKindOf, markDatabaseError } from "../../base/errors/database-error-kind.js";
import { FencedError } from "../blocks/fenced-error.js";
import type { ChainStore } from "../blocks/store.js";

export interface WriteWatchDeps<State> {
  readonly store: ChainStore<State>;
  /** Delay between write attempts after a failure. */
  readonly retryEveryMs: number;
  /** Time for which a lock may block writes before it counts as an error. */
  readonly lockedForMs: number;
  readonly nowMs: () => number;
  /** Called with the error when writes start to fail, and with undefined when they succeed again. */
  readonly onChange: (error: unknown) => void;
}

/** Store with monitored writes. */
export interface MonitoredStore<State> {
  readonly store: ChainStore<State>;
  /** Stops the write attempts. */
  stop(): void;
}

/** Part of the database. Parts are monitored separately, because one may accept writes while another does not. */
interface Part {
  readonly store: { tryWrite(): Promise<void> };
  /** Time since which a lock blocks writes; undefined if none does. */
  lockedSinceMs: number | undefined;
}

/** Wraps the writes of a store in a monitor. */
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
        remove: (settled) => watchMempool(() => store.mempool.remove(settled)),
      },
      write: (latest, work) => watchBlocks(() => store.write(latest, work)),
    },
    stop,
  };
}

/** Creates the monitor for parts of the database. */
function createWatch({ retryEveryMs, lockedForMs, nowMs, onChange }: Omit<WriteWatchDeps<never>, "store">) {
  const troubled = new Set<Part>();
  const tries = createTries(retryEveryMs, (part) => void retry(part));

  function watchPart(partStore: Part["store"]) {
    const part: Part = { store: partStore, lockedSinceMs: undefined };
    return async <T>(write: () => Promise<T>): Promise<T> => {
      try {
        const result = await write();
        // A small write may succeed where a large one fails. While writes fail, only the write attempts detect
        // recovery.
        if (!troubled.has(part)) {
          update(part, undefined);
        }
        return result;
      } catch (error) {
        record(part, error);
        throw error;
      }
    };
  }

  /** Records a failed write. Ignores non-database errors and queueing behind other writes of this node. */
  function record(part: Part, error: unknown): void {
    if (error instanceof FencedError) {
      // The database responds, and the fence reports its own errors.
      update(part, undefined);
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
      update(part, error);
    }
  }

  function update(part: Part, error: unknown): void {
    const wasTroubled = troubled.size > 0;
    tries.end(part);
    if (error === undefined) {
      part.lockedSinceMs = undefined;
      troubled.delete(part);
    } else {
      troubled.add(part);
      tries.plan(part);
    }
    if (troubled.size > 0 !== wasTroubled) {
      onChange(error);
    }
  }

  /** Attempts a write. After a failure, plans another attempt, whatever the error. */
  async function retry(part: Part): Promise<void> {
    try {
      await part.store.tryWrite();
      update(part, undefined);
    } catch (error) {
      record(part, error);
      if (tries.areOn(part)) {
        tries.plan(part);
      }
    }
  }

  return { watchPart, stop: () => tries.stop() };
}

/** Creates the timers of the next write attempt for each part with failed writes. */
function createTries(everyMs: number, work: (part: Part) => void) {
  const timers = new Map<Part, NodeJS.Timeout>();
  let isStopped = false;
  return {
    /** Returns true if an attempt is planned or in progress. */
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
    /** Cancels all attempts and plans no more. */
    stop(): void {
      isStopped = true;
      timers.forEach((timer) => clearTimeout(timer));
    },
  };
}
