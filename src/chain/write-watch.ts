/**
 * Watches whether the database takes writes. Reads may well go on where it does not, on a full disk or behind somebody
 * else's lock, so the pending count alone does not tell. While writes fail, one that is taken back is tried again and
 * again, so that the trouble is known to be over before anybody has to find out.
 */
import { toFailure } from "../rpc/errors.js";
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
  let isTroubled = false;
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;

  async function watch<T>(write: () => Promise<T>): Promise<T> {
    try {
      const result = await write();
      settle(undefined);
      return result;
    } catch (error) {
      if (toFailure(error).reason === "DATABASE_UNAVAILABLE") {
        settle(error);
      }
      throw error;
    }
  }

  function settle(trouble: unknown): void {
    if ((trouble !== undefined) !== isTroubled) {
      isTroubled = trouble !== undefined;
      onChange(trouble);
    }
    clearTimeout(timer);
    if (isTroubled && !isStopped) {
      timer = setTimeout(() => void watch(() => store.tryWrite()).catch(() => undefined), retryEveryMs);
    }
  }

  return {
    store: {
      ...store,
      insertPending: (...given) => watch(() => store.insertPending(...given)),
      write: (work) => watch(() => store.write(work)),
    },
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
