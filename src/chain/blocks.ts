/** The next block: applied as it came, or made of what is pending. Its effects and itself are stored together. */
import type { BlockHeader } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { Failure } from "../rpc/errors.js";
import type { BlockEffects, Effects } from "./effects.js";
import type { Genesis } from "./genesis.js";
import { include, inNonceOrder, learn } from "./inclusion.js";
import type { ChainChanges, ChainHead, ChainStore } from "./store.js";
import { type ReadBlock, type ReadTransaction, readTransactions, signBlock } from "./transaction.js";

/** What blocks are checked against, and stored in. */
export interface BlockParts<State> {
  readonly store: ChainStore<State>;
  readonly genesis: Genesis | undefined;
  readonly effects: Effects<State>;
  readonly nowMs: () => number;
}

/** The key of an authority. */
export interface SealingKey {
  readonly publicKey: string;
  sign(bytes: Uint8Array): Uint8Array;
}

/** Bounds of a block that this node makes. */
const maxBlockTransactions = 1_000;
const maxBlockBytes = 3 * 1024 * 1024;
/** How far a block may be ahead of this node's clock. */
const maxAheadMs = 60_000;

/**
 * Applies a block whose signatures were verified.
 *
 * @throws Failure INVALID_REQUEST, INVALID_SIGNATURE when it is not a block that may come after `before`.
 */
export async function applyNext<State>(
  block: ReadBlock,
  before: ChainHead,
  { store, genesis, effects, nowMs }: BlockParts<State>,
): Promise<void> {
  const { header } = block;
  if (header.number !== before.number + 1n || header.previousHash !== before.hash) {
    throw new Failure(
      "INVALID_REQUEST",
      `The block is not the next one: block ${before.number + 1n} after ${before.hash} is.`,
    );
  }
  if (!genesis!.authorities.includes(header.proposer)) {
    throw new Failure("INVALID_SIGNATURE", "The block's proposer is no authority of this network.");
  }
  if (header.timestampMs < before.timestampMs || Number(header.timestampMs) > nowMs() + maxAheadMs) {
    throw new Failure("INVALID_REQUEST", "The block's time is before that of the block before, or in the future.");
  }
  await store.write(async (changes, state) => {
    const begun = begin(effects, header, state);
    const known = await learn(changes, block.transactions);
    for (const transaction of block.transactions) {
      await include(begun, known, transaction);
    }
    await changes.insertTransactions(block.transactions, header.number);
    const root = await begun.finish();
    if (root !== header.commitmentRoot) {
      throw new Failure(
        "INVALID_REQUEST",
        `The block says that the commitment tree's root becomes ${header.commitmentRoot ?? "no other"}; here it becomes ${root ?? "no other"}.`,
      );
    }
    await changes.insertBlock(block);
  });
}

/**
 * Makes a block of what is pending, and applies it.
 *
 * @returns the block; undefined when there was nothing to put into it.
 */
export async function makeNext<State>(
  key: SealingKey,
  before: ChainHead,
  { store, effects, nowMs }: BlockParts<State>,
): Promise<ReadBlock | undefined> {
  const pending = await store.pending(maxBlockTransactions);
  if (pending.length === 0) {
    return undefined;
  }
  const header = {
    number: before.number + 1n,
    previousHash: before.hash,
    timestampMs: BigInt(Math.max(nowMs(), Number(before.timestampMs))),
    proposer: key.publicKey,
  };
  return await store.write(async (changes, state) => {
    const begun = begin(effects, header, state);
    const transactions = inNonceOrder(await readTransactions(pending));
    const included = await includeWhatFits(transactions, begun, changes, nowMs);
    if (included.length === 0) {
      return undefined;
    }
    await changes.insertTransactions(included, header.number);
    const commitmentRoot = await begun.finish();
    const made = signBlock({ ...header, commitmentRoot }, included, (bytes) => key.sign(bytes));
    await changes.insertBlock(made);
    return made;
  });
}

/** Includes transactions up to the size of a block, and rejects those whose effects cannot be made. */
async function includeWhatFits(
  transactions: readonly ReadTransaction[],
  begun: BlockEffects,
  changes: ChainChanges,
  nowMs: () => number,
): Promise<ReadTransaction[]> {
  const included: ReadTransaction[] = [];
  let sizeBytes = 0;
  const known = await learn(changes, transactions);
  for (const transaction of transactions) {
    sizeBytes += transaction.signed.body.length;
    if (included.length > 0 && sizeBytes > maxBlockBytes) {
      break;
    }
    try {
      await changes.attempt(() => include(begun, known, transaction));
      included.push(transaction);
    } catch (error) {
      if (!(error instanceof Failure)) {
        throw error;
      }
      await changes.reject(transaction.hash, error.message, nowMs());
    }
  }
  return included;
}

function begin<State>(
  effects: Effects<State>,
  { number, timestampMs }: Pick<BlockHeader, "number" | "timestampMs">,
  state: State,
): BlockEffects {
  return effects.begin({ number, timeMs: Number(timestampMs) }, state);
}
