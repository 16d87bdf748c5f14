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

export interface WriteMonitorDeps<State> {
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
export function monitorWrites<State>(deps: WriteMonitorDeps<State>): MonitoredStore<State> {
  const { store } = deps;
  const { monitorPart, stop } = createPartMonitor(deps);
  const monitorBlocks = monitorPart(store);
  const monitorMempool = monitorPart(store.mempool);
  return {
    store: {
      ...store,
      mempool: {
        ...store.mempool,
        insertPending: (entry, bytes) => monitorMempool(() => store.mempool.insertPending(entry, bytes)),
        remove: (removals) => monitorMempool(() => store.mempool.remove(removals)),
      },
      write: (latest, work) => monitorBlocks(() => store.write(latest, work)),
    },
    stop,
  };
}

/** Creates the monitor for parts of the database. */
function createPartMonitor({ retryEveryMs, lockedForMs, nowMs, onChange }: Omit<WriteMonitorDeps<never>, "store">) {
  const failing = new Set<Part>();
  const attempts = createAttempts(retryEveryMs, (part) => void retry(part));

  function monitorPart(partStore: Part["store"]) {
    const part: Part = { store: partStore, lockedSinceMs: undefined };
    return async <T>(write: () => Promise<T>): Promise<T> => {
      try {
        const result = await write();
        // A small write may succeed while large ones fail. Recovery is therefore detected by a write attempt only.
        if (!failing.has(part)) {
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
    const kind = databaseErrorKindOf(error);
    if (kind === "locked") {
      part.lockedSinceMs ??= nowMs();
      if (failing.size === 0 && nowMs() - part.lockedSinceMs < lockedForMs) {
        attempts.schedule(part);
        return;
      }
      markDatabaseError(error as object);
    }
    if (kind === "locked" || kind === "unavailable") {
      update(part, error);
    }
  }

  /** Sets the state of a part: failing with an error, or working if the error is undefined. */
  function update(part: Part, error: unknown): void {
    const wasFailing = failing.size > 0;
    attempts.cancel(part);
    if (error === undefined) {
      part.lockedSinceMs = undefined;
      failing.delete(part);
    } else {
      failing.add(part);
      attempts.schedule(part);
    }
    if (failing.size > 0 !== wasFailing) {
      onChange(error);
    }
  }

  /** Attempts a write. After a failure, schedules another attempt, whatever the error. */
  async function retry(part: Part): Promise<void> {
    try {
      await part.store.tryWrite();
      update(part, undefined);
    } catch (error) {
      record(part, error);
      if (attempts.isActive(part)) {
        attempts.schedule(part);
      }
    }
  }

  return { monitorPart, stop: () => attempts.stop() };
}

/** Creates the timers of the next write attempt for each part with failed writes. */
function createAttempts(everyMs: number, attempt: (part: Part) => void) {
  const timers = new Map<Part, NodeJS.Timeout>();
  let isStopped = false;
  return {
    /** Returns true if an attempt is scheduled or in progress. */
    isActive: (part: Part): boolean => timers.has(part),
    schedule(part: Part): void {
      if (!isStopped) {
        clearTimeout(timers.get(part));
        timers.set(
          part,
          setTimeout(() => attempt(part), everyMs),
        );
      }
    },
    cancel(part: Part): void {
      clearTimeout(timers.get(part));
      timers.delete(part);
    },
    /** Cancels all attempts and schedules no more. */
    stop(): void {
      isStopped = true;
      timers.forEach((timer) => clearTimeout(timer));
    },
  };
}
