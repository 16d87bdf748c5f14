/** Error of requests that need the latest block, on a node without blocks. */
import { RpcError } from "../../rpc/errors.js";

/**
 * Creates the error.
 *
 * @param hasGenesis true if the node has a genesis: its state is then missing because a snapshot sync is running.
 * @param missing noun of the error message for a node without a genesis.
 */
export function noLatestBlock(hasGenesis: boolean, missing: "chain" | "genesis block" = "chain"): RpcError {
  return new RpcError(
    "STATE_NOT_READY",
    hasGenesis
      ? "The node has no state yet: it is syncing from a snapshot."
      : `The node has no ${missing} yet; start it with --genesis FILE.`,
  );
}
