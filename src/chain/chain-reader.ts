/** The chain of a node that only reads: somebody else applies the blocks, to the same database. */
import { Failure } from "../rpc/errors.js";
import { type Repetition, repeat } from "../base/repeat.js";
import type { Chain } from "./chain.js";
import type { ChainHead, ChainStore } from "./store.js";

/** A chain that reads the database again and again. */
export interface ChainReader extends Chain, Repetition {}

/**
 * Builds a reader, which looks for new blocks at once.
 *
 * @param onError hears of a look that failed; the head stays as it was until the next look.
 */
export function createChainReader(
  store: Pick<ChainStore, "head">,
  first: ChainHead,
  lookEveryMs: number,
  onError: (error: unknown) => void,
): ChainReader {
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
