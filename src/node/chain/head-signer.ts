/** Signed heads of authorities that this node receives or signs. */
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
