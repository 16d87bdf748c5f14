/** What has left the mempool and is being taken out of the database. */
import type { ChainStore, Rejection } from "../blocks/store.js";

export interface LeavingDeps {
  readonly store: Pick<ChainStore, "mempool">;
  readonly onError: (error: unknown) => void;
}

/** What leaves. */
export interface MempoolRemovals {
  /** It is in a block. */
  include(hash: string): void;
  /** It gets into none. */
  reject(rejection: Rejection): void;
  /** Why one is rejected of which the database does not know it yet. */
  rejectionOf(hash: string): string | undefined;
  /** Stores that all these have left. Does not reject: what failed is stored with the next that leaves. */
  store(): Promise<void>;
}

/** Builds it; nothing leaves yet. */
export function createMempoolRemovals({ store: { mempool }, onError }: LeavingDeps): MempoolRemovals {
  const included = new Set<string>();
  const rejected = new Map<string, Rejection>();
  return {
    include: (hash) => void included.add(hash),
    reject: (rejection) => void rejected.set(rejection.hash, rejection),
    rejectionOf: (hash) => rejected.get(hash)?.reason,
    async store() {
      const settled = { included: [...included], rejected: [...rejected.values()] };
      if (settled.included.length + settled.rejected.length === 0) {
        return;
      }
      try {
        await mempool.settle(settled);
      } catch (error) {
        onError(error);
        return;
      }
      settled.included.forEach((hash) => included.delete(hash));
      settled.rejected.forEach(({ hash }) => rejected.delete(hash));
    },
  };
}
