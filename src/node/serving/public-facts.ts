/** Facts about the chain that the public port needs, available once the node has booted. */
import type { Chain } from "../../chain/chain.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { HeadStatements } from "../../chain/writer/head-statements.js";
import { RpcError } from "../../rpc/errors.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Facts that the node knows once it has booted. */
export interface KnownFacts {
  readonly chain: Pick<Chain, "head">;
  readonly heads: Pick<HeadStatements, "latestSignedHead">;
  /** Genesis; undefined while there is no block 0. */
  readonly genesis: Pick<Genesis, "hash"> | undefined;
}

/** Access to the facts. While the node starts, there is no head. */
export interface PublicFacts extends Omit<KnownFacts, "genesis"> {
  /**
   * Returns the genesis.
   *
   * @throws RpcError STATE_NOT_READY while the node starts.
   */
  readonly genesis: () => KnownFacts["genesis"];
  /** Sets the facts. Called once, when the node has booted. */
  set(facts: KnownFacts): void;
}

/** Delay in seconds after which clients should retry a call to a node that starts. */
const retryAfterS = 1;

/** Creates the error for calls that need a booted node. */
export function createStartingError({ progress }: Pick<NodeCore, "progress">): RpcError {
  const { current } = progress.state();
  const step = current === undefined ? "" : ` (${current})`;
  return new RpcError("STATE_NOT_READY", `The node is starting${step}; try again in ${retryAfterS} s.`, retryAfterS);
}

/** Creates the facts of a node that starts, which are not known yet. */
export function createPublicFacts(core: Pick<NodeCore, "progress">): PublicFacts {
  let current: KnownFacts | undefined;
  return {
    chain: { head: () => current?.chain.head() },
    heads: { latestSignedHead: (hash) => current?.heads.latestSignedHead(hash) },
    genesis() {
      if (current === undefined) {
        throw createStartingError(core);
      }
      return current.genesis;
    },
    set(facts) {
      current = facts;
    },
  };
}
