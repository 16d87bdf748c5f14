/** Readiness of a node: whether it has the latest block of its network, and whether it accepts transactions. */
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import type { Chain } from "../../chain/chain.js";
import type { MainLoop } from "../../peers/sync/main-loop.js";
import type { PeerBook } from "../../peers/address-book/peer-book.js";
import type { Sync } from "../../peers/sync/sync.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { Forks } from "./forks.js";

/** Dependencies of the readiness. */
export interface ReadinessDeps {
  readonly chain: Chain;
  readonly book: PeerBook;
  readonly sync: Sync;
  readonly mainLoop: MainLoop;
  readonly forks: Forks;
  /** Returns true if the role and the writer lease permit this node to accept transactions. */
  readonly mayAccept: () => boolean;
  /** True if only this node produces the blocks of its network. */
  readonly isOnlyAuthority: boolean;
  /**
   * Returns the reason why the network's only authority does not know yet if a newer block exists; undefined once it
   * knows.
   */
  readonly whyUnknown: () => string | undefined;
  /** Returns true if an external consensus process supplies the blocks. */
  readonly hasConsensus: () => boolean;
}

export interface Readiness {
  /** Returns true if the node has the latest block that it knows of, and no sync is in progress. */
  readonly isSynced: () => boolean;
  /**
   * Returns true if the node accepts transactions: it has booted, is synced and alive, its chain has not failed, and it
   * is not stopping.
   */
  readonly isAccepting: () => boolean;
}

export function createReadiness(
  { config, lifecycle, progress, subsystems }: Pick<NodeCore, "config" | "lifecycle" | "progress" | "subsystems">,
  deps: ReadinessDeps,
): Readiness {
  const { chain, book, sync, mainLoop, forks, mayAccept, isOnlyAuthority, whyUnknown, hasConsensus } = deps;

  function isSynced(): boolean {
    const number = chain.head()?.number;
    const hasPolled = mainLoop.heartbeat().iterationsTotal > 0n || book.isEmpty();
    if (number === undefined || sync.isActive() || !hasPolled || number < forks.headers.latestNumber()) {
      return false;
    }
    if (config.role !== "writer") {
      // Blocks arrive through the database.
      return true;
    }
    return isOnlyAuthority ? whyUnknown() === undefined : book.highestBlock() !== undefined || hasConsensus();
  }

  function isAccepting(): boolean {
    return (
      mayAccept() &&
      progress.state().complete &&
      !lifecycle.isStopping() &&
      // The chain has failed if the database is unavailable, rejects writes or is corrupt.
      subsystems.get("chain").status !== SubsystemStatus.FAILED &&
      isSynced() &&
      !mainLoop.isStalled() &&
      forks.whyStopped() === undefined
    );
  }

  return { isSynced, isAccepting };
}
