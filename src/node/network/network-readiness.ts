/** Whether a node is at the newest block of its network, and whether it takes transactions. */
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import type { Chain } from "../../chain/chain.js";
import type { MainLoop } from "../../peers/sync/main-loop.js";
import type { PeerBook } from "../../peers/address-book/peer-book.js";
import type { Sync } from "../../peers/sync/sync.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { Forks } from "./forks.js";

/** What it is told by. */
export interface ReadinessDeps {
  readonly chain: Chain;
  readonly book: PeerBook;
  readonly sync: Sync;
  readonly mainLoop: MainLoop;
  readonly forks: Forks;
  /** Whether its role and its lease let it take transactions. */
  readonly mayAccept: () => boolean;
  /** It alone makes the blocks of its network. */
  readonly isOnlyAuthority: boolean;
  /** Why a network's only authority does not know yet whether there is a newer block; undefined once it does. */
  readonly whyUnknown: () => string | undefined;
  /** Whether a process beside it brings the blocks. */
  readonly hasConsensus: () => boolean;
}

/** What a node says of itself. */
export interface Readiness {
  /** It is at the newest block that it knows of, and not on its way there. */
  readonly isSynced: () => boolean;
  /** It is booted, synced and alive, its chain is not failed, and it was not told to stop. */
  readonly isAccepting: () => boolean;
}

export function createReadiness({ config, lifecycle, progress, subsystems }: NodeCore, deps: ReadinessDeps): Readiness {
  const { chain, book, sync, mainLoop, forks, mayAccept, isOnlyAuthority, whyUnknown, hasConsensus } = deps;

  function isSynced(): boolean {
    const number = chain.head()?.number;
    const hasAsked = mainLoop.heartbeat().iterationsTotal > 0n || book.isEmpty();
    if (number === undefined || sync.isActive() || !hasAsked || number < forks.headers.newest()) {
      return false;
    }
    if (config.role !== "writer") {
      // Its blocks come by the database.
      return true;
    }
    return isOnlyAuthority ? whyUnknown() === undefined : book.highestBlock() !== undefined || hasConsensus();
  }

  function isAccepting(): boolean {
    return (
      mayAccept() &&
      progress.state().complete &&
      !lifecycle.isStopping() &&
      // So it is when the database does not answer, takes no writes or is damaged.
      subsystems.get("chain").status !== SubsystemStatus.FAILED &&
      isSynced() &&
      !mainLoop.isDead() &&
      forks.whyStopped() === undefined
    );
  }

  return { isSynced, isAccepting };
}
