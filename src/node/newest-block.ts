/**
 * Whether an authority knows the newest block, so that it may make the next one. After a power cut or from an old backup
 * its database may lack blocks that it has signed: whoever makes them again forks its own chain, for good.
 */
import { messageOf } from "../base/message-of.js";
import type { Chain } from "../chain/chain.js";
import type { Genesis } from "../chain/genesis.js";
import { forgetNewNetwork, isNewNetwork } from "../config/own-files.js";
import type { PeerBook } from "../peers/peer-book.js";
import type { NodeCore } from "./core.js";

/** What it is known from. */
export interface NewestBlockParts {
  readonly chain: Pick<Chain, "head">;
  readonly book: Pick<PeerBook, "believed" | "isEmpty">;
  /** Whoever began the network has said so, and no block was made since. */
  readonly isNew: boolean;
}

/** Builds the function that says why the newest block is not known yet; undefined once it is, and from then on. */
export function watchNewestBlock(
  { config }: Pick<NodeCore, "config">,
  { chain, book, isNew }: NewestBlockParts,
): () => string | undefined {
  let isKnown = config.recover;

  return () => {
    const number = chain.head()?.number ?? 0n;
    isKnown ||= isNew && number === 0n;
    // One that has less than this node itself cannot know what it has forgotten.
    isKnown ||= book.believed().some(({ head }) => head !== undefined && head.number >= number);
    // Whoever names no peer says that there is none. A database without any block may be one that was lost.
    isKnown ||= book.isEmpty() && number > 0n;
    if (isKnown) {
      return undefined;
    }
    return book.isEmpty()
      ? "No block is made yet: the database holds none, and no peer has said that there is none. Start this node with " +
          "--recover if the network is new, or name a peer that has its blocks."
      : `No block is made yet: no verified peer that has block ${number} has said which block is the newest. If no newer ` +
          "block exists anywhere, start this node with --recover.";
  };
}

/**
 * Whether `gatehouse init` said that this network is new. The word is taken back by the first block: who loses that must not
 * make another one in its place.
 */
export async function takeWord(
  { config, bus, warn }: Pick<NodeCore, "config" | "bus" | "warn">,
  genesis: Genesis | undefined,
): Promise<boolean> {
  const isNew = genesis !== undefined && (await isNewNetwork(config.dataDir, genesis.hash));
  let hasWord = isNew;
  bus.on("blockApplied", () => {
    if (hasWord) {
      hasWord = false;
      forgetNewNetwork(config.dataDir).catch((error: unknown) =>
        warn("chain", `The file new-network in the data directory cannot be removed (${messageOf(error)}); remove it.`),
      );
    }
  });
  return isNew;
}
