import type { PeerBook } from "../../peers/address-book/peer-book.js";
import { peerReasons } from "../../peers/address-book/peer-reasons.js";
import { RpcError } from "../../rpc/errors.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { MayFollow } from "./followers.js";
import { createPeerLog } from "./peer-log.js";

/**
 * Creates the check of a node that requests full blocks or the state. A node that may not follow is shown in the address
 * book if it is a verified peer, and logged.
 */
export function createFollowerCheck(
  core: Pick<NodeCore, "log">,
  { mayFollow, book }: { readonly mayFollow: MayFollow; readonly book: PeerBook },
): (identity: string | undefined) => void {
  const logPeer = createPeerLog(core);
  return (identity) => {
    if (mayFollow(identity)) {
      return;
    }
    if (identity !== undefined) {
      const reason = peerReasons.unlistedHere(book.verified(identity)?.endpoint, identity);
      book.recordRefusal(identity, reason);
      logPeer(identity, `The node ${identity} requests blocks. ${reason}`);
    }
    throw new RpcError(
      "PERMISSION_DENIED",
      "This node sends blocks to listed followers only: ask its operator to add your node's key in --peers or with gatehouse " +
        "peers add URL --identity KEY. Followers in the network's genesis are listed, too.",
    );
  };
}
