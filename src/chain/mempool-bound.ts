/** Bounds the mempool without counting it for each one that comes. */
import { Failure } from "../rpc/errors.js";
import type { Mempool, MempoolSize } from "./store.js";

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
  /** Tells that transactions left the mempool. */
  recount(): void;
}

/** Builds the bound. */
export function createMempoolBound(mempool: Pick<Mempool, "mempoolSize">): MempoolBound {
  /** About how full the mempool is; undefined when it has to be counted. */
  let size: MempoolSize | undefined;
  return {
    async takeRoom(bytes) {
      const isFull = ({ count, bytes: held }: MempoolSize): boolean =>
        count >= maxPending || held + bytes > maxPendingBytes;
      if (size === undefined || isFull(size)) {
        size = await mempool.mempoolSize();
      }
      if (isFull(size)) {
        throw new Failure("OVERLOADED", "The mempool is full; try again in 5 s.", 5);
      }
      size = { count: size.count + 1, bytes: size.bytes + bytes };
    },

    recount() {
      size = undefined;
    },
  };
}
