/** Bounds the pool of pending transactions without counting it for each one that comes. */
import { Failure } from "../rpc/errors.js";
import type { Mempool, PoolSize } from "./store.js";

const maxPending = 10_000;
const maxPendingBytes = 64 * 1024 * 1024;

/** The bound. */
export interface MempoolBound {
  /**
   * Takes room for a transaction of so many bytes. Nobody is refused by a guess: what was taken and not used, after an
   * insert that failed, is found by counting.
   *
   * @throws Failure OVERLOADED
   */
  takeRoom(bytes: number): Promise<void>;
  /** Tells that transactions left the pool. */
  recount(): void;
}

/** Builds the bound. */
export function createMempoolBound(mempool: Pick<Mempool, "poolSize">): MempoolBound {
  /** About how full the pool is; undefined when it has to be counted. */
  let size: PoolSize | undefined;
  return {
    async takeRoom(bytes) {
      const isFull = ({ count, bytes: held }: PoolSize): boolean =>
        count >= maxPending || held + bytes > maxPendingBytes;
      if (size === undefined || isFull(size)) {
        size = await mempool.poolSize();
      }
      if (isFull(size)) {
        throw new Failure("OVERLOADED", "The pool of pending transactions is full; try again in 5 s.", 5);
      }
      size = { count: size.count + 1, bytes: size.bytes + bytes };
    },

    recount() {
      size = undefined;
    },
  };
}
