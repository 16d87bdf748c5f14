/** Waits of clients that have seen a block elsewhere, until this process has that block, too. */
import type { Chain } from "../../chain/chain.js";
import { RpcError } from "../../rpc/errors.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Limit on the wait in milliseconds. */
const maxWaitMs = 1_000;
/** Delay in seconds after which clients should retry. */
const retryAfterS = 1;

/**
 * Creates a function that waits for a block. The function returns undefined if the node has the block. Otherwise it
 * returns a promise, which rejects with STATE_NOT_READY if the block does not arrive within 1 s.
 */
export function createBlockWaits(
  { bus }: Pick<NodeCore, "bus">,
  chain: Pick<Chain, "head">,
): (minBlock: bigint) => Promise<void> | undefined {
  const waiting = new Set<() => void>();
  const checkAll = (): void => waiting.forEach((check) => check());
  bus.on("blockApplied", checkAll);
  bus.on("headFound", checkAll);

  return (minBlock) => {
    const hasBlock = (): boolean => (chain.head()?.number ?? -1n) >= minBlock;
    if (hasBlock()) {
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const stopWaiting = (): void => {
        clearTimeout(timer);
        waiting.delete(check);
      };
      const check = (): void => {
        if (hasBlock()) {
          stopWaiting();
          resolve();
        }
      };
      const timer = setTimeout(() => {
        stopWaiting();
        const at = chain.head()?.number;
        const position = at === undefined ? "has no block yet" : `is at block ${at}`;
        reject(new RpcError("STATE_NOT_READY", `This node ${position}; try again in ${retryAfterS} s.`, retryAfterS));
      }, maxWaitMs);
      waiting.add(check);
    });
  };
}
