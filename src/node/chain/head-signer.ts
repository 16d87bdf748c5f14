/** What authorities say of the newest block: what this node has heard of it, and what it says itself. */
import { createErrorThrottle } from "../../base/logging/error-throttle.js";
import type { SealingKey } from "../../chain/writer/blocks.js";
import type { Chain } from "../../chain/chain.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import { createHeadStatements, type HeadStatements } from "../../chain/writer/head-statements.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Keeps the newest statement, and tells the others of it. */
export function startHeadSigner(
  { bus, log, stateHeadEveryMs }: Pick<NodeCore, "bus" | "log" | "stateHeadEveryMs">,
  { chain, genesis }: { readonly chain: Pick<Chain, "head">; readonly genesis: Genesis | undefined },
): HeadStatements {
  return createHeadStatements({
    authorities: genesis?.authorities ?? [],
    network: genesis?.hash ?? "",
    head: () => chain.head(),
    nowMs: Date.now,
    leastGapMs: stateHeadEveryMs / 3,
    onNewer: () => bus.emit("headStated", undefined),
    onContradiction: ({ proposer, number, hash }) =>
      log.warn(
        { subsystem: "chain" },
        `The key ${proposer} of an authority says that block ${number} is ${hash}; here it is ${chain.head()?.hash}`,
      ),
  });
}

/** The word of an authority that makes blocks: that it has signed one, or that there is no newer one. */
export interface HeadSigner {
  /** A block was signed, which is word enough. */
  given(): void;
  /** Says that there is no newer block, where nothing was signed for a while. Never rejects; it is tried again. */
  giveIfDue(timeMs: number): Promise<void>;
}

/** Begins without a word: the first one is due at once. */
export function createHeadSigner(
  { log, stateHeadEveryMs }: Pick<NodeCore, "log" | "stateHeadEveryMs">,
  {
    chain,
    key,
    heads,
  }: {
    readonly chain: Pick<Chain, "head" | "signHead">;
    readonly key: SealingKey;
    readonly heads: Pick<HeadStatements, "take">;
  },
): HeadSigner {
  let givenMs = -Infinity;
  const troubles = createErrorThrottle({
    log,
    level: "warn",
    fields: { subsystem: "chain" },
    message: "It could not be said anew which block is the newest; it is tried again",
    over: "It is said again which block is the newest",
  });

  function given(): void {
    givenMs = performance.now();
  }

  return {
    given,
    async giveIfDue(timeMs) {
      const isDue = performance.now() - givenMs >= stateHeadEveryMs;
      // By a clock that is behind the newest block nothing newer can be said than that block says.
      if (!isDue || timeMs < Number(chain.head()?.timestampMs ?? 0)) {
        return;
      }
      try {
        heads.take(await chain.signHead(key, timeMs));
        given();
        troubles.well();
      } catch (error) {
        troubles.failed(error);
      }
    },
  };
}
