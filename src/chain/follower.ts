/** The chain of a node that only reads: somebody else applies the blocks, to the same database. */
import { Failure } from "../errors.js";
import type { Chain } from "./chain.js";
import type { ChainHead, ChainStore } from "./store.js";

/** A chain that follows the database. */
export interface Follower extends Chain {
  /** Ends the looks at the database. */
  stop(): void;
}

/**
 * Follows the newest block of the database.
 *
 * @param onError hears of a look that failed; the head stays as it was, and the next look follows.
 */
export function followChain(
  store: Pick<ChainStore, "head">,
  first: ChainHead,
  lookEveryMs: number,
  onError: (error: unknown) => void,
): Follower {
  let head: ChainHead = first;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;

  function lookLater(): void {
    if (!isStopped) {
      timer = setTimeout(() => {
        store
          .head()
          .then((newest) => {
            head = newest ?? head;
          })
          .catch(onError)
          .finally(lookLater);
      }, lookEveryMs);
    }
  }
  lookLater();

  const refuse = (): Promise<never> =>
    Promise.reject(new Failure("STATE_NOT_READY", "This node only reads; hand it to the node that writes."));
  return {
    head: () => head,
    submit: refuse,
    apply: refuse,
    seal: refuse,
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
