/** Readiness of a node: whether it has the latest block of its network, and whether it accepts transactions. */
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { errorMessage } from "../../base/errors/error-message.js";
import { forgetNewNetwork, forgetRestored, isNewNetwork, isRestored } from "../../config/data-dir-files.js";
import type { MainLoop } from "../../peers/sync/main-loop.js";
import type { PeerBook } from "../../peers/address-book/peer-book.js";
import type { Sync } from "../../peers/sync/sync.js";
import type { Config } from "../../config/config.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { NetworkParts } from "./network-book.js";

/**
 * Blocks that a node may lack, and the time in milliseconds for which it may lack one, while it is ready. A follower
 * lacks each block from its announcement until it is applied: some milliseconds, or a second on a busy machine.
 */
const tolerance = { blocks: 10n, timeMs: 10_000 };

/** Returns the reason and the remedy of a node without a genesis. */
export const describeNoNetwork = ({ role }: Pick<Config, "role">): string =>
  role === "writer"
    ? "The node belongs to no network: start it with --genesis FILE, or run gatehouse join URL."
    : "The writer of the database belongs to no network yet.";

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
      return genesis === undefined
        ? describeNoNetwork(config)
        : "The node has no chain yet; it loads a snapshot of one, or has failed to.";
    }
    if (mainLoop.heartbeat().iterationsTotal === 0n && !book.isEmpty()) {
      return "The node has not called its peers yet.";
    }
    if (!hasBlocks(number)) {
      const missing = `The node has block ${number}; its network has block ${forks.headers.latestNumber()}.`;
      const whyNoPeer = book.whyNoneUsed();
      return whyNoPeer === undefined ? missing : `${missing} ${whyNoPeer}`;
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
      : `No peer has reported the latest block. ${book.whyNoneUsed() ?? "Add a peer: gatehouse peers add URL"}`;
  }

  /** Returns the reason for which the node could not accept transactions even with all blocks; undefined if it could. */
  function whyUnable(): string | undefined {
    const { status, lastError } = subsystems.get("chain");
    if (lifecycle.isStopping()) {
      return "The node is shutting down.";
    }
    if (!mayAccept()) {
      return "The node is not the writer of its database.";
    }
    if (!progress.state().complete) {
      return "The node is booting.";
    }
    // The chain has failed if the database is unavailable, rejects writes or is corrupt.
    if (status === SubsystemStatus.FAILED) {
      return lastError?.message ?? "The chain has failed.";
    }
    return mainLoop.isStalled() ? "The main loop is dead." : forks.whyStopped();
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
  if (isAlone && number > 0n && isCopy) {
    return (
      "The node produces no blocks yet: its database was restored, and no peer has reported the latest block. If the node that " +
      `was backed up is gone, and no node has a block after ${number}, start this node with --recover; otherwise add a peer.`
    );
  }
  return isAlone
    ? "The node produces no blocks yet: its database has none, and no peer has confirmed that none exist. Start this node with " +
        "--recover if the network is new, or add a peer that has its blocks."
    : `The node produces no blocks yet: no verified peer that has block ${number} has reported the latest block. If no newer ` +
        "block exists anywhere, start this node with --recover.";
}
