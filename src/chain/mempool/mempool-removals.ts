/** Removals from the mempool that are not stored in its database yet. */
import type { ChainStore, Rejection } from "../blocks/store.js";

export interface RemovalsDeps {
  readonly store: Pick<ChainStore, "mempool">;
  readonly onError: (error: unknown) => void;
}

/** List of removals to store. */
export interface MempoolRemovals {
  /** Records that a block includes the transaction. */
  include(hash: string): void;
  /** Records a rejection. */
  reject(rejection: Rejection): void;
  /** Returns the reason of a rejection that is not yet stored. */
  rejectionOf(hash: string): string | undefined;
  /** Stores all recorded removals. Never rejects: after an error, the next call stores the same removals again. */
  store(): Promise<void>;
}

/** Creates an empty list of removals. */
export function createMempoolRemovals({ store: { mempool }, onError }: RemovalsDeps): MempoolRemovals {
  const included = new Set<string>();
  const rejected = new Map<string, Rejection>();
  return {
    include: (hash) => void included.add(hash),
    reject: (rejection) => void rejected.set(rejection.hash, rejection),
    rejectionOf: (hash) => rejected.get(hash)?.reason,
    async store() {
      const removals = { included: [...included], rejected: [...rejected.values()] };
      if (removals.included.length + removals.rejected.length === 0) {
        return;
      }
      try {
        await mempool.remove(removals);
      } catch (error) {
        onError(error);
        return;
      }
      removals.included.forEach((hash) => included.delete(hash));
      removals.rejected.forEach(({ hash }) => rejected.delete(hash));
    },
  };
}
