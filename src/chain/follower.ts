/** The chain of a node that only reads: somebody else applies the blocks, to the same database. */
import { Failure } from "../rpc/errors.js";
import { type Repetition, repeat } from "../base/repeat.js";
import type { Chain } from "./chain.js";
import type { ChainHead, ChainStore } from "./store.js";

/** A chain that follows the database. */
export interface Follower extends Chain, Repetition {}

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
  const looks = repeat(
    async () => {
      head = (await store.head()) ?? head;
    },
    lookEveryMs,
    onError,
  );
  const refuse = (): Promise<never> =>
    Promise.reject(new Failure("STATE_NOT_READY", "This node only reads; hand it to the node that writes."));
  return {
    head: () => head,
    submit: refuse,
    apply: refuse,
    seal: refuse,
    stop: () => looks.stop(),
  };
}
