import { type BucketRate, createTokenBuckets } from "../../base/limits/token-buckets.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Rate of lines about one peer. */
const peerRate: BucketRate = { burst: 1, tokens: 1, everyMs: 3_600_000 };
/** Rate of lines about all peers, because a stranger may have any number of keys. */
const totalRate: BucketRate = { burst: 32, tokens: 1, everyMs: 60_000 };
/** Limit on the peers that are tracked. */
const maxTracked = 1_024;

export type PeerLog = ReturnType<typeof createPeerLog>;

/** Creates the function that logs a problem of a peer, at most once an hour for each peer, its key or its endpoint. */
export function createPeerLog({ log }: Pick<NodeCore, "log">) {
  const peers = createTokenBuckets(maxTracked);
  const total = createTokenBuckets(1).of("all", totalRate);
  return (peer: string, message: string): void => {
    if (peers.of(peer, peerRate).tryRemoveTokens(1) && total.tryRemoveTokens(1)) {
      log.warn({ subsystem: "omni", peer }, message);
    }
  };
}
