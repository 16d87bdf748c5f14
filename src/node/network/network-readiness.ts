/** Readiness of a node: whether it has the latest block of its network, and whether it accepts transactions. */
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { errorMessage } from "../../base/errors/error-message.js";
import { forgetNewNetwork, forgetRestored, isNewNetwork, isRestored } from "../../config/data-dir-files.js";
import type { MainLoop } from "../../peers/sync/main-loop.js";
import type { PeerBook } from "../../peers/address-book/peer-book.js";
import type { Sync } from "../../peers/sync/sync.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { NetworkParts } from "./network-book.js";
import { readinessReasons } from "./readiness-reasons.js";

/**
 * Blocks that a node may lack, and the time in milliseconds for which it may lack one, while it is ready. A follower
 * lacks each block from its announcement until it is applied: some milliseconds, or a second on a busy machine.
 */
const tolerance = { blocks: 10n, timeMs: 10_000 };

/** Parts of the network on which the readiness depends. */
interface ReadinessDeps {
  readonly book: PeerBook;
  readonly sync: Sync;
  readonly mainLoop: MainLoop;
  /** True if only this node produces the blocks of its network. */
  readonly isOnlyAuthority: boolean;
  /** Result of {@link createProductionGuard}. */
  readonly whyUnknown: () => string | undefined;
  /** Returns true if an external consensus process supplies the blocks. */
  readonly hasConsensus: () => boolean;
}

export function createReadiness(
  { config, lifecycle, progress, subsystems }: Pick<NodeCore, "config" | "lifecycle" | "progress" | "subsystems">,
  { chain, forks, genesis, mayAccept }: Pick<NetworkParts, "chain" | "forks" | "genesis" | "mayAccept">,
  { book, sync, mainLoop, isOnlyAuthority, whyUnknown, hasConsensus }: ReadinessDeps,
) {
  /** Returns true if the node has the block `number`, the latest that it knows of, and no sync is in progress. */
  const hasLatest = (number: bigint): boolean => !sync.isActive() && number >= forks.headers.latestNumber();

  /** Returns true if the node lacks at most few blocks after `number`, and those only for a short time. */
  const hasNearlyLatest = (number: bigint): boolean =>
    number + tolerance.blocks >= forks.headers.latestNumber() && forks.headers.missingForMs(number) <= tolerance.timeMs;

  /**
   * Returns the reason for which the node does not know the latest block of its network, or lacks it according to
   * `hasBlocks`; undefined if it has it.
   */
  function whyBehind(hasBlocks: (number: bigint) => boolean): string | undefined {
    const number = chain.head()?.number;
    if (number === undefined) {
      return genesis === undefined ? readinessReasons.noNetwork(config) : readinessReasons.noChain();
    }
    if (mainLoop.heartbeat().iterationsTotal === 0n && !book.isEmpty()) {
      return readinessReasons.uncalledPeers();
    }
    if (!hasBlocks(number)) {
      return readinessReasons.missingBlocks(number, forks.headers.latestNumber(), book.whyNoneUsed());
    }
    if (config.role !== "writer") {
      // Blocks arrive through the database.
      return undefined;
    }
    if (isOnlyAuthority) {
      return whyUnknown();
    }
    return book.highestBlock() !== undefined || hasConsensus()
      ? undefined
      : readinessReasons.unreportedBlock(book.whyNoneUsed());
  }

  /** Returns the reason for which the node could not accept transactions even with all blocks; undefined if it could. */
  function whyUnable(): string | undefined {
    const { status, lastError, extra } = subsystems.get("chain");
    if (lifecycle.isStopping()) {
      return readinessReasons.stopping();
    }
    if (!mayAccept()) {
      return readinessReasons.notWriter(extra?.reason);
    }
    if (!progress.state().complete) {
      return readinessReasons.booting();
    }
    if (status === SubsystemStatus.FAILED) {
      return readinessReasons.chainFailed(lastError?.message);
    }
    return mainLoop.isStalled() ? readinessReasons.stalled() : forks.whyStopped();
  }

  return {
    /** Returns true if the node has the latest block that it knows of, and no sync is in progress. */
    isSynced: () => whyBehind(hasLatest) === undefined,
    /** Returns true if the node accepts transactions, and is synced. While it is not, `/health` shows the reason. */
    isAccepting(): boolean {
      const reason = whyUnable() ?? whyBehind(hasLatest);
      const { status, extra } = subsystems.get("main_loop");
      if (status === SubsystemStatus.READY && extra?.reason !== reason) {
        subsystems.set("main_loop", { extra: { reason } });
      }
      return reason === undefined;
    },
    /**
     * Returns the reason for which the node does not accept transactions, or lacks more than the latest few blocks;
     * undefined if there is none.
     */
    whyNotFollowing: () => whyUnable() ?? whyBehind(hasNearlyLatest),
  };
}

/**
 * Creates the function that checks if an authority knows the latest block before it produces the next one. After a power
 * loss, or from an old backup, its database may lack blocks that it has signed. An authority that signs other blocks in
 * their place forks its chain permanently. The function returns the reason why the latest block is not known yet, and
 * undefined forever once it is.
 *
 * The marker files of `gatehouse init` and `gatehouse restore` in the data directory count. The first block removes the
 * former: if that block is lost later, the node must not produce another one in its place. The latter, the marker of a
 * copy, is removed once the latest block is known.
 */
export async function createProductionGuard(
  { bus, config, warn }: Pick<NodeCore, "bus" | "config" | "warn">,
  { chain, genesis }: Pick<NetworkParts, "chain" | "genesis">,
  book: PeerBook,
): Promise<() => string | undefined> {
  const { dataDir, recover } = config;
  const isNew = genesis !== undefined && (await isNewNetwork(dataDir, genesis.hash));
  /** True if the original node may still run, and may have newer blocks. */
  const isCopy = isRestored(dataDir);
  let hasNewMarker = isNew;
  let isKnown = false;

  function removeMarker(name: string, remove: (dataDir: string) => Promise<void>): void {
    remove(dataDir).catch((error: unknown) =>
      warn("chain", `The file ${name} in the data directory cannot be removed (${errorMessage(error)}); remove it.`),
    );
  }

  bus.on("blockApplied", () => {
    if (hasNewMarker) {
      hasNewMarker = false;
      removeMarker("new-network", forgetNewNetwork);
    }
  });

  /** Returns true if the operator or a peer has confirmed that no newer block exists. */
  function isConfirmed(number: bigint): boolean {
    return (
      recover ||
      (isNew && number === 0n) ||
      // A peer with fewer blocks than this node cannot know of blocks that this node has lost.
      book.healthy().some(({ head }) => head !== undefined && head.number >= number) ||
      // Without peers there is no node that could have more blocks. An empty database may be a lost one, so it needs
      // confirmation.
      (book.isEmpty() && number > 0n && !isCopy)
    );
  }

  return () => {
    const number = chain.head()?.number ?? 0n;
    if (!isKnown && isConfirmed(number)) {
      isKnown = true;
      if (isCopy) {
        removeMarker("restored", forgetRestored);
      }
    }
    return isKnown ? undefined : describeUnknown(number, book.isEmpty(), isCopy);
  };
}

function describeUnknown(number: bigint, isAlone: boolean, isCopy: boolean): string {
  if (!isAlone) {
    return readinessReasons.unconfirmedBlock(number);
  }
  return number > 0n && isCopy ? readinessReasons.restoredAlone(number) : readinessReasons.emptyAlone();
}
