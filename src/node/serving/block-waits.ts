/** Callers who have seen a block elsewhere, and wait for a moment until this node, or this process of it, is there, too. */
import type { Chain } from "../../chain/chain.js";
import { RpcError } from "../../rpc/errors.js";
import type { NodeCore } from "../lifecycle/core.js";

/** How long they wait, and when to try again. */
const longestMs = 1_000;
const retryAfterS = 1;

/**
 * Builds what waits for a block: undefined where the node has it, or a promise that rejects with STATE_NOT_READY when it
 * does not get there in time.
 */
export function createBlockWaits(
  { bus }: Pick<NodeCore, "bus">,
  chain: Pick<Chain, "head">,
): (leastBlock: bigint) => Promise<void> | undefined {
  const waiting = new Set<() => void>();
  const look = (): void => waiting.forEach((lookAgain) => lookAgain());
  bus.on("blockApplied", look);
  bus.on("headFound", look);

  return (leastBlock) => {
    const isThere = (): boolean => (chain.head()?.number ?? -1n) >= leastBlock;
    if (isThere()) {
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        waiting.delete(lookAgain);
      };
      const lookAgain = (): void => {
        if (isThere()) {
          end();
          resolve();
        }
      };
      const timer = setTimeout(() => {
        end();
        const at = chain.head()?.number;
        const where = at === undefined ? "has no block yet" : `is at block ${at}`;
        reject(new RpcError("STATE_NOT_READY", `This node ${where}; try again in ${retryAfterS} s.`, retryAfterS));
      }, longestMs);
      waiting.add(lookAgain);
    });
  };
}
