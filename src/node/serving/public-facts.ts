/** What the public port must know of its node, and does not know before the node has booted. */
import type { Chain } from "../../chain/chain.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { HeadStatements } from "../../chain/writer/head-statements.js";
import { RpcError } from "../../rpc/errors.js";
import type { NodeCore } from "../lifecycle/core.js";

/** What the node knows of its chain. */
export interface KnownFacts {
  readonly chain: Pick<Chain, "head">;
  readonly heads: Pick<HeadStatements, "newestStatement">;
  /** Undefined while there is no block 0. */
  readonly genesis: Pick<Genesis, "hash"> | undefined;
}

/** The facts as they are at each moment. */
export interface PublicFacts extends Omit<KnownFacts, "genesis"> {
  /** Returns the genesis. Throws STATE_NOT_READY while the node starts. */
  readonly genesis: () => KnownFacts["genesis"];
  /** Called once, when the node knows them. */
  know(facts: KnownFacts): void;
}

/** How long callers should wait before they call a node again that starts. */
const retryAfterS = 1;

/** Creates the failure of what a node cannot do before it has booted. */
export function stillStarting({ progress }: Pick<NodeCore, "progress">): RpcError {
  const { current } = progress.state();
  const step = current === undefined ? "" : ` (${current})`;
  return new RpcError("STATE_NOT_READY", `The node is starting${step}; try again in ${retryAfterS} s.`, retryAfterS);
}

/** Creates the facts of a node that starts. */
export function createPublicFacts(core: Pick<NodeCore, "progress">): PublicFacts {
  let known: KnownFacts | undefined;
  return {
    chain: { head: () => known?.chain.head() },
    heads: { newestStatement: (hash) => known?.heads.newestStatement(hash) },
    genesis() {
      if (known === undefined) {
        throw stillStarting(core);
      }
      return known.genesis;
    },
    know(facts) {
      known = facts;
    },
  };
}
