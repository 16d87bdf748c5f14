/**
 * Watches whether the database takes writes. Reads may well go on where it does not, on a full disk or behind somebody
 * else's lock, so the pending count alone does not tell. While writes to a part of it fail, one that is taken back is
 * tried again and again, so that the trouble is known to be over before anybody has to find out. Who waited too long for
 * others of this node met no trouble: the database is busy, and takes writes.
 */
import { toFailure } from "../rpc/errors.js";
import { FencedError } from "./fenced-error.js";
import type { ChainStore } from "./store.js";

/** What the watch needs. */
export interface WriteWatchParts<State> {
  readonly store: ChainStore<State>;
  /** How long after a failed write the next one is tried. */
  readonly retryEveryMs: number;
  /** Hears when writes begin to fail (why) and when they go through again (undefined). */
  readonly onChange: (trouble: unknown) => void;
}

/** A store whose writes are watched. */
export interface WatchedStore<State> {
  readonly store: ChainStore<State>;
  /** Ends the tries. */
  stop(): void;
}

/** Puts a watch before the writes of a store. */
export function watchWrites<State>({ store, retryEveryMs, onChange }: WriteWatchParts<State>): WatchedStore<State> {
  const troubled = new Set<object>();
  const timers = new Set<NodeJS.Timeout>();
  let isStopped = false;

  /** A watch over a part of the database: that writes to another one go through says nothing of it. */
  function watchPart(part: { tryWrite(): Promise<void> }) {
    let timer: NodeJS.Timeout | undefined;

    async function watch<T>(write: () => Promise<T>): Promise<T> {
      try {
        const result = await write();
        settle(undefined);
        return result;
      } catch (error) {
        if (error instanceof FencedError) {
          // The database answers, and the fence tells of itself.
          settle(undefined);
        } else if (toFailure(error).reason === "DATABASE_UNAVAILABLE") {
          settle(error);
        }
        throw error;
      }
    }

    function settle(trouble: unknown): void {
      const wasTroubled = troubled.size > 0;
      if (trouble === undefined) {
        troubled.delete(part);
      } else {
        troubled.add(part);
      }
      if (troubled.size > 0 !== wasTroubled) {
        onChange(trouble);
      }
      clearTimeout(timer);
      timers.delete(timer!);
      if (trouble !== undefined && !isStopped) {
        timer = setTimeout(() => void watch(() => part.tryWrite()).catch(() => undefined), retryEveryMs);
        timers.add(timer);
      }
    }

    return watch;
  }

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
    stop() {
      isStopped = true;
      timers.forEach((timer) => clearTimeout(timer));
    },
  };
}
