/**
 * Checks that an authority knows the latest block before it produces the next one. After a power loss, or from an old
 * backup, its database may lack blocks that it has signed. An authority that signs other blocks in their place forks
 * its chain permanently.
 */
import { errorMessage } from "../../base/errors/error-message.js";
import type { Chain } from "../../chain/chain.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import { forgetNewNetwork, forgetRestored, isNewNetwork, isRestored } from "../../config/data-dir-files.js";
import type { PeerBook } from "../../peers/address-book/peer-book.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Dependencies of the check. */
export interface ProductionGuardDeps {
  readonly chain: Pick<Chain, "head">;
  readonly book: Pick<PeerBook, "healthy" | "isEmpty">;
  readonly markers: MarkerFiles;
}

/** Marker files that commands have left in the data directory. */
export interface MarkerFiles {
  /** True if `gatehouse init` started a new network, and no block was produced since. */
  readonly isNew: boolean;
  /** True if the data directory is a copy. The original node may still run, and may have newer blocks. */
  readonly isCopy: boolean;
  /** Removes the marker of a copy. Called once the latest block is known. */
  removeCopyMarker(): void;
}

/**
 * Creates the function that returns the reason why the latest block is not known yet. Once the block is known, the
 * function always returns undefined.
 */
export function createProductionGuard(
  { config }: Pick<NodeCore, "config">,
  { chain, book, markers }: ProductionGuardDeps,
): () => string | undefined {
  let isKnown = false;

  /** Returns true if the operator or a peer has confirmed that no newer block exists. */
  function isConfirmed(number: bigint): boolean {
    return (
      config.recover ||
      (markers.isNew && number === 0n) ||
      // A peer with fewer blocks than this node cannot know of blocks that this node has lost.
      book.healthy().some(({ head }) => head !== undefined && head.number >= number) ||
      // Without peers there is no node that could have more blocks. An empty database may be a lost one, so it needs
      // confirmation.
      (book.isEmpty() && number > 0n && !markers.isCopy)
    );
  }

  return () => {
    const number = chain.head()?.number ?? 0n;
    if (!isKnown && isConfirmed(number)) {
      isKnown = true;
      markers.removeCopyMarker();
    }
    return isKnown ? undefined : describeUnknown(number, book.isEmpty(), markers.isCopy);
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

/**
 * Reads the marker files that `gatehouse init` and `gatehouse restore` have left in the data directory. The first block
 * removes the new-network marker: if that block is lost later, the node must not produce another one in its place. The
 * marker of a copy is removed once the latest block is known.
 */
export async function readMarkers(
  { config, bus, warn }: Pick<NodeCore, "bus" | "config" | "warn">,
  genesis: Genesis | undefined,
): Promise<MarkerFiles> {
  const { dataDir } = config;
  const isNew = genesis !== undefined && (await isNewNetwork(dataDir, genesis.hash));
  const isCopy = isRestored(dataDir);
  const removeMarker = (name: string, remove: (dataDir: string) => Promise<void>): void =>
    void remove(dataDir).catch((error: unknown) =>
      warn("chain", `The file ${name} in the data directory cannot be removed (${errorMessage(error)}); remove it.`),
    );
  let hasMarker = isNew;
  bus.on("blockApplied", () => {
    if (hasMarker) {
      hasMarker = false;
      removeMarker("new-network", forgetNewNetwork);
    }
  });
  return {
    isNew,
    isCopy,
    removeCopyMarker() {
      if (isCopy) {
        removeMarker("restored", forgetRestored);
      }
    },
  };
}
