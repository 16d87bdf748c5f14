/**
 * Whether an authority knows the newest block, so that it may make the next one. After a power cut or from an old backup
 * its database may lack blocks that it has signed: whoever makes them again forks its own chain, for good.
 */
import { errorMessage } from "../../base/errors/error-message.js";
import type { Chain } from "../../chain/chain.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import { forgetNewNetwork, forgetRestored, isNewNetwork, isRestored } from "../../config/data-dir-files.js";
import type { PeerBook } from "../../peers/address-book/peer-book.js";
import type { NodeCore } from "../lifecycle/core.js";

/** What it is known from. */
export interface NewestBlockDeps {
  readonly chain: Pick<Chain, "head">;
  readonly book: Pick<PeerBook, "believed" | "isEmpty">;
  readonly words: Words;
}

/** What commands have said of the data directory. */
export interface Words {
  /** Whoever began the network has said so, and no block was made since. */
  readonly isNew: boolean;
  /** It is a copy: what it was copied from may run, and have newer blocks. */
  readonly isCopy: boolean;
  /** The newest block is known, so that it does not matter any more that this is a copy. */
  isKnown(): void;
}

/** Builds the function that says why the newest block is not known yet; undefined once it is, and from then on. */
export function watchNewestBlock(
  { config }: Pick<NodeCore, "config">,
  { chain, book, words }: NewestBlockDeps,
): () => string | undefined {
  let isKnown = false;

  /** Whether anybody has said so: the operator, or a peer. */
  function isSaid(number: bigint): boolean {
    return (
      config.recover ||
      (words.isNew && number === 0n) ||
      // One that has less than this node itself cannot know what it has forgotten.
      book.believed().some(({ head }) => head !== undefined && head.number >= number) ||
      // Whoever names no peer says that there is none. A database without any block may be one that was lost.
      (book.isEmpty() && number > 0n && !words.isCopy)
    );
  }

  return () => {
    const number = chain.head()?.number ?? 0n;
    if (!isKnown && isSaid(number)) {
      isKnown = true;
      words.isKnown();
    }
    return isKnown ? undefined : describeUnknown(number, book.isEmpty(), words.isCopy);
  };
}

function describeUnknown(number: bigint, isAlone: boolean, isCopy: boolean): string {
  if (isAlone && number > 0n && isCopy) {
    return (
      "No block is made yet: the database was restored, and no peer has said which block is the newest. Where the node that " +
      `it was saved from is gone, and nobody has a block after ${number}, start this node with --recover; else name a peer.`
    );
  }
  return isAlone
    ? "No block is made yet: the database holds none, and no peer has said that there is none. Start this node with " +
        "--recover if the network is new, or name a peer that has its blocks."
    : `No block is made yet: no verified peer that has block ${number} has said which block is the newest. If no newer ` +
        "block exists anywhere, start this node with --recover.";
}

/**
 * What `gatehouse init` and `gatehouse restore` said of the data directory. That the network is new is taken back by the
 * first block: who loses that must not make another one in its place. That it is a copy, once the newest block is known.
 */
export async function takeWords(
  { config, bus, warn }: Pick<NodeCore, "config" | "bus" | "warn">,
  genesis: Genesis | undefined,
): Promise<Words> {
  const { dataDir } = config;
  const isNew = genesis !== undefined && (await isNewNetwork(dataDir, genesis.hash));
  const isCopy = isRestored(dataDir);
  const forget = (name: string, remove: (dataDir: string) => Promise<void>): void =>
    void remove(dataDir).catch((error: unknown) =>
      warn("chain", `The file ${name} in the data directory cannot be removed (${errorMessage(error)}); remove it.`),
    );
  let hasWord = isNew;
  bus.on("blockApplied", () => {
    if (hasWord) {
      hasWord = false;
      forget("new-network", forgetNewNetwork);
    }
  });
  return {
    isNew,
    isCopy,
    isKnown() {
      if (isCopy) {
        forget("restored", forgetRestored);
      }
    },
  };
}
