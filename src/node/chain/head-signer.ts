/** Signed heads of authorities: those that this node receives, and those that it signs. */
import { createErrorThrottle } from "../../base/logging/error-throttle.js";
import type { AuthorityKey } from "../../chain/writer/block-builder.js";
import type { Chain } from "../../chain/chain.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import { createHeadStatements, type HeadStatements } from "../../chain/writer/head-statements.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Creates the store of the latest signed head, and publishes `headStated` for each newer one. */
export function startHeadSigner(
  { bus, log, stateHeadEveryMs }: Pick<NodeCore, "bus" | "log" | "stateHeadEveryMs">,
  { chain, genesis }: { readonly chain: Pick<Chain, "head">; readonly genesis: Genesis | undefined },
): HeadStatements {
  return createHeadStatements({
    authorities: genesis?.authorities ?? [],
    network: genesis?.hash ?? "",
    head: () => chain.head(),
    nowMs: Date.now,
    minGapMs: stateHeadEveryMs / 3,
    onNewer: () => bus.emit("headStated", undefined),
    onContradiction: ({ proposer, number, hash }) =>
      log.warn(
        { subsystem: "chain" },
        `The authority ${proposer} signed block ${number} with the hash ${hash}, but here its hash is ${chain.head()?.hash}`,
      ),
  });
}

/** Signs heads for an authority that produces blocks. A signed head states that no newer block exists. */
export interface HeadSigner {
  /** Records that a block was signed, which makes a signed head unnecessary for a while. */
  recordSigned(): void;
  /**
   * Signs the latest head if nothing was signed for `stateHeadEveryMs`. Never rejects: logs an error, and the next call
   * retries.
   */
  signIfDue(timeMs: number): Promise<void>;
}

/** Creates a head signer. The first signed head is due immediately. */
export function createHeadSigner(
  { log, stateHeadEveryMs }: Pick<NodeCore, "log" | "stateHeadEveryMs">,
  {
    chain,
    key,
    heads,
  }: {
    readonly chain: Pick<Chain, "head" | "signHead">;
    readonly key: AuthorityKey;
    readonly heads: Pick<HeadStatements, "accept">;
  },
): HeadSigner {
  let lastSignedMs = -Infinity;
  const throttle = createErrorThrottle({
    log,
    level: "warn",
    fields: { subsystem: "chain" },
    message: "The head could not be signed again; retrying",
    recoveryMessage: "The head is signed again",
  });

  function recordSigned(): void {
    lastSignedMs = performance.now();
  }

  return {
    recordSigned,
    async signIfDue(timeMs) {
      const isDue = performance.now() - lastSignedMs >= stateHeadEveryMs;
      // If the clock is behind the latest block, a signed head would add nothing to that block.
      if (!isDue || timeMs < Number(chain.head()?.timestampMs ?? 0)) {
        return;
      }
      try {
        heads.accept(await chain.signHead(key, timeMs));
        recordSigned();
        throttle.succeeded();
      } catch (error) {
        throttle.failed(error);
      }
    },
  };
}
