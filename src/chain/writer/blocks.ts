/** The next block: applied as it came, or made of what is pending. Its effects and itself are stored together. */
import { settleAll } from "../../base/async/settle-all.js";
import { isDatabaseError } from "../../base/errors/database-error-kind.js";
import { sha256 } from "../../base/crypto/hash.js";
import type { BlockHeader, Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { mapYielding } from "../../base/async/yielding.js";
import { RpcError } from "../../rpc/errors.js";
import type { BlockExecutor, Executor } from "../transactions/executor.js";
import type { Genesis } from "../blocks/genesis.js";
import { beginInclusion, type Inclusion } from "./inclusion.js";
import type { ChainChanges, ChainHead, ChainStore } from "../blocks/store.js";
import {
  type BlockInReading,
  type BlockRoots,
  type ChainRules,
  hashOfHashes,
  type VerifiedBlock,
  type ReadTransaction,
  readTransaction,
  signBlock,
  type UnsignedHeader,
} from "../transactions/transaction.js";
import { maxBlockCost } from "../transactions/cost.js";

/** What blocks are checked against, and stored in. */
export interface BlockParts<State> {
  readonly store: ChainStore<State>;
  readonly genesis: Genesis | undefined;
  readonly effects: Executor<State>;
  readonly nowMs: () => number;
  /** Hears of an error, none of a rule, that a transaction was rejected for. */
  readonly onUnexpected: (error: unknown, hash: string) => void;
}

/** The key of an authority. */
export interface SealingKey {
  readonly publicKey: string;
  sign(bytes: Uint8Array): Uint8Array;
}

/** Bounds of a block that this node makes. */
export const maxBlockTransactions = 1_000;
export const targetBlockBytes = 3 * 1024 * 1024;
/** How far a block may be ahead of the clock of who applies it. */
export const maxAheadMs = 60_000;

/**
 * Applies a block. Nothing of it is stored before the signatures of its transactions hold, which are verified meanwhile.
 *
 * @throws Failure INVALID_REQUEST, INVALID_SIGNATURE when it is not a block that may come after `before`.
 */
export async function applyNext<State>(
  { block, signatures }: BlockInReading,
  before: ChainHead,
  { store, genesis, effects, nowMs }: BlockParts<State>,
): Promise<void> {
  const { header } = block;
  if (header.number !== before.number + 1n || header.previousHash !== before.hash) {
    throw new RpcError(
      "INVALID_REQUEST",
      `The block is not the next one: block ${before.number + 1n} after ${before.hash} is.`,
    );
  }
  if (!genesis!.authorities.includes(header.proposer)) {
    throw new RpcError("INVALID_SIGNATURE", "The block's proposer is no authority of this network.");
  }
  checkTime(header.timestampMs, before, nowMs);
  await store
    .write(before, async (changes, state) => {
      checkRoots(header, await includeAll(header, block.transactions, begin(effects, header, state), changes));
      await changes.insertBlock(block);
      await signatures;
    })
    .catch(async (error: unknown) => {
      // A signature that is wrong is what is wrong, whatever came of it.
      await signatures;
      throw error;
    });
}

/** Makes the effects of a block that is given. */
async function includeAll(
  { number, timestampMs }: Pick<BlockHeader, "number" | "timestampMs">,
  transactions: readonly ReadTransaction[],
  effects: BlockExecutor,
  changes: ChainChanges,
): Promise<BlockRoots> {
  const inclusion = await beginInclusion(changes, transactions, effects, Number(timestampMs));
  for await (const transaction of inclusion.inTurns()) {
    await inclusion.include(transaction);
  }
  const [, roots] = await settleAll([changes.insertTransactions(transactions, number), effects.finish(transactions)]);
  return roots;
}

/**
 * What the header of the next block says, but for its proposer, where it holds these transactions; nothing is stored.
 *
 * @throws Failure INVALID_REQUEST when they make no block that may come after `before`.
 */
export async function dryRunNext<State>(
  transactions: readonly ReadTransaction[],
  timestampMs: bigint,
  before: ChainHead,
  deps: BlockParts<State>,
): Promise<Omit<UnsignedHeader, "proposer">> {
  const { store, effects, nowMs } = deps;
  checkTime(timestampMs, before, nowMs);
  const header = { ...after(before), timestampMs };
  let roots: BlockRoots | undefined;
  const worked = new Error("The block can be applied.");
  await store
    .write(before, async (changes, state) => {
      roots = await includeAll(header, transactions, begin(effects, header, state), changes);
      throw worked;
    })
    .catch((error: unknown) => {
      if (error !== worked) {
        throw error;
      }
    });
  return { ...header, ...roots!, transactionsHash: hashOfHashes(transactions.map(({ hash }) => hash)) };
}

/** What a block's header says of its place in the chain. */
function after({ number, hash, genesisHash }: ChainHead): Pick<BlockHeader, "number" | "previousHash" | "genesisHash"> {
  return { number: number + 1n, previousHash: hash, genesisHash };
}

function checkTime(timestampMs: bigint, before: ChainHead, nowMs: () => number): void {
  if (timestampMs < before.timestampMs || Number(timestampMs) > nowMs() + maxAheadMs) {
    throw new RpcError("INVALID_REQUEST", "The block's time is before that of the block before, or in the future.");
  }
}

/** @throws Failure INVALID_REQUEST where the state after a block is another one than it says. */
function checkRoots(header: BlockHeader, { commitmentRoot, stateRoot }: BlockRoots): void {
  if (commitmentRoot !== header.commitmentRoot) {
    throw new RpcError(
      "INVALID_REQUEST",
      `The block says that the commitment tree's root becomes ${header.commitmentRoot ?? "no other"}; here it becomes ${commitmentRoot ?? "no other"}.`,
    );
  }
  if (stateRoot !== header.stateRoot) {
    throw new RpcError(
      "INVALID_REQUEST",
      `The block says that the state's root becomes ${header.stateRoot}; here it becomes ${stateRoot}.`,
    );
  }
}

/** What came of making a block. */
export interface Made {
  /** Undefined when there was nothing to put into it. */
  readonly block: VerifiedBlock | undefined;
  /** Transactions that never get into a block: why, by their hashes. */
  readonly rejected: ReadonlyMap<string, string>;
  /** How many were left for a later block, because something that they need is busy. */
  readonly deferredCount: number;
}

/** What a block is made of. */
export interface Making {
  /** In the order in which they have their turn. */
  readonly candidates: readonly Transaction[];
  readonly rules: ChainRules;
  /** Its time, unless that of the block before is later. */
  readonly timeMs: number;
}

/**
 * Makes a block of transactions, and applies it. Whatever one of them throws is its own rejection, unless the database
 * is in trouble.
 */
export async function makeNext<State>(
  key: SealingKey,
  before: ChainHead,
  { candidates, rules, timeMs }: Making,
  deps: BlockParts<State>,
): Promise<Made> {
  const { store, effects } = deps;
  const header = {
    ...after(before),
    timestampMs: BigInt(Math.max(timeMs, Number(before.timestampMs))),
    proposer: key.publicKey,
  };
  const rejected = new Map<string, string>();
  const readable = await readWhatIsValid(candidates, rules, rejected);
  return await store.write(before, async (changes, state) => {
    const begun = begin(effects, header, state);
    const { included, deferredCount } = await includeWhatFits({
      inclusion: await beginInclusion(changes, readable, begun, Number(header.timestampMs)),
      changes,
      rejected,
      onUnexpected: deps.onUnexpected,
    });
    if (included.length === 0) {
      return { block: undefined, rejected, deferredCount };
    }
    const [, roots] = await settleAll([changes.insertTransactions(included, header.number), begun.finish(included)]);
    const block = signBlock({ ...header, ...roots }, included, (bytes) => key.sign(bytes));
    await changes.insertBlock(block);
    return { block, rejected, deferredCount };
  });
}

/** Why a transaction is rejected that threw what is no rule's word. */
export const cannotBeApplied = "The transaction cannot be applied.";

/** Rejects what was stored and is no transaction of this network. */
async function readWhatIsValid(
  candidates: readonly Transaction[],
  rules: ChainRules,
  rejected: Map<string, string>,
): Promise<ReadTransaction[]> {
  const read = await mapYielding(candidates, (signed) => {
    try {
      return readTransaction(signed, rules);
    } catch (error) {
      rejected.set(sha256(signed.body), (error as Error).message);
      return undefined;
    }
  });
  return read.filter((one) => one !== undefined);
}

interface Filling {
  readonly inclusion: Inclusion;
  readonly changes: ChainChanges;
  readonly rejected: Map<string, string>;
  readonly onUnexpected: (error: unknown, hash: string) => void;
}

/** Includes transactions up to the bounds of a block. Those behind a deferred one of their sender wait with it. */
async function includeWhatFits({
  inclusion,
  changes,
  rejected,
  onUnexpected,
}: Filling): Promise<{ included: ReadTransaction[]; deferredCount: number }> {
  const included: ReadTransaction[] = [];
  const deferred = new Set<string>();
  let sizeBytes = 0;
  for await (const transaction of inclusion.inTurns()) {
    const { hash, body, signed } = transaction;
    if (deferred.has(body.sender)) {
      continue;
    }
    if (
      included.length > 0 &&
      (sizeBytes + signed.body.length > targetBlockBytes || inclusion.work() >= maxBlockCost)
    ) {
      break;
    }
    try {
      await inclusion.include(transaction);
      sizeBytes += signed.body.length;
      included.push(transaction);
    } catch (error) {
      if (isDatabaseError(error) || !(error instanceof RpcError || (await changes.canGoOn()))) {
        throw error;
      }
      if (error instanceof RpcError && error.kind.transient) {
        deferred.add(body.sender);
        continue;
      }
      if (!(error instanceof RpcError)) {
        onUnexpected(error, hash);
      }
      rejected.set(hash, error instanceof RpcError ? error.message : cannotBeApplied);
    }
  }
  return { included, deferredCount: deferred.size };
}

function begin<State>(
  effects: Executor<State>,
  { number, timestampMs }: Pick<BlockHeader, "number" | "timestampMs">,
  state: State,
): BlockExecutor {
  return effects.begin({ number, timeMs: Number(timestampMs) }, state);
}
