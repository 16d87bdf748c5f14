/** Facts about the chain that the public port needs, available once the node has booted. */
import type { Chain } from "../../chain/chain.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { HeadStatements } from "../../chain/writer/head-statements.js";
import { RpcError } from "../../rpc/errors.js";
import type { NodeCore } from "../lifecycle/core.js";

interface KnownFacts {
  readonly chain: Pick<Chain, "head">;
  readonly heads: Pick<HeadStatements, "latestSignedHead">;
  /** Genesis; undefined while there is no block 0. */
  readonly genesis: Pick<Genesis, "hash"> | undefined;
}

/** Delay in seconds after which clients should retry a call to a node that starts. */
const retryAfterS = 1;

export function createStartingError({ progress }: Pick<NodeCore, "progress">): RpcError {
  const { current } = progress.state();
  const step = current === undefined ? "" : ` (${current})`;
  return new RpcError("STATE_NOT_READY", `The node is starting${step}; try again in ${retryAfterS} s.`, retryAfterS);
}

export type PublicFacts = ReturnType<typeof createPublicFacts>;

/** Creates the facts of a node that starts, which are not known yet. Until they are, there is no head. */
export function createPublicFacts(core: Pick<NodeCore, "progress">) {
  let current: KnownFacts | undefined;
  const chain: KnownFacts["chain"] = { head: () => current?.chain.head() };
  const heads: KnownFacts["heads"] = { latestSignedHead: (hash) => current?.heads.latestSignedHead(hash) };
  return {
    chain,
    heads,
    /**
     * Returns the genesis.
     *
     * @throws RpcError STATE_NOT_READY while the node starts.
     */
    genesis(): KnownFacts["genesis"] {
      if (current === undefined) {
        throw createStartingError(core);
      }
      return current.genesis;
    },
    /** Sets the facts. Called once, when the node has booted. */
    set(facts: KnownFacts): void {
      current = facts;
    },
  };
}
