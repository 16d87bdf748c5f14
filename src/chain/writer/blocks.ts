/** Next block of the chain, received from another node. A block is stored atomically with its changes of the state. */
import { settleAll } from "../../base/async/settle-all.js";
import type { BlockHeader } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { RpcError } from "../../rpc/errors.js";
import type { BlockExecutor, Executor } from "../transactions/executor.js";
import type { Genesis } from "../blocks/genesis.js";
import { startInclusion } from "./inclusion.js";
import type { BlockChanges } from "../blocks/block-store.js";
import type { ChainStore } from "../blocks/store.js";
import type { ChainHead } from "../blocks/store-types.js";
import {
  type BlockInVerification,
  type BlockRoots,
  hashOfHashes,
  type UnsignedHeader,
  type VerifiedTransaction,
} from "../transactions/transaction.js";

/** Dependencies to execute and store blocks. */
export interface BlockDeps<State> {
  readonly store: ChainStore<State>;
  readonly genesis: Genesis | undefined;
  readonly executor: Executor<State>;
  readonly nowMs: () => number;
  /** Called when a transaction is rejected for an unexpected error rather than for breaking a rule. */
  readonly onUnexpected: (error: unknown, hash: string) => void;
}

/** Limit in milliseconds by which the timestamp of a block may be ahead of the local clock. */
export const maxAheadMs = 60_000;

/**
 * Applies a block while the signatures of its transactions are being verified. Stores the block only if all of them are
 * valid.
 *
 * @throws RpcError INVALID_REQUEST, INVALID_SIGNATURE if the block is not a valid successor of the previous one.
 */
export async function applyNext<State>(
  { block, signatures }: BlockInVerification,
  previous: ChainHead,
  { store, genesis, executor, nowMs }: BlockDeps<State>,
): Promise<void> {
  const { header } = block;
  if (header.number !== previous.number + 1n || header.previousHash !== previous.hash) {
    throw new RpcError(
      "INVALID_REQUEST",
      `The block is not the next block: expected block ${previous.number + 1n} after ${previous.hash}.`,
    );
  }
  if (!genesis!.authorities.includes(header.proposer)) {
    throw new RpcError("INVALID_SIGNATURE", "The block's proposer is not an authority of this network.");
  }
  checkTime(header.timestampMs, previous, nowMs);
  await store
    .write(previous, async (changes, state) => {
      checkRoots(
        header,
        await executeAll(header, block.transactions, startExecution(executor, header, state), changes),
      );
      await changes.insertBlock(block);
      await signatures;
    })
    .catch(async (error: unknown) => {
      // An invalid signature is the root cause, so its error takes precedence.
      await signatures;
      throw error;
    });
}

/** Executes all transactions of a block and inserts them. Returns the roots of the state after them. */
async function executeAll(
  { number, timestampMs }: Pick<BlockHeader, "number" | "timestampMs">,
  transactions: readonly VerifiedTransaction[],
  executor: BlockExecutor,
  changes: BlockChanges,
): Promise<BlockRoots> {
  const inclusion = await startInclusion(changes, transactions, executor, Number(timestampMs));
  for await (const transaction of inclusion.inOrder()) {
    await inclusion.include(transaction);
  }
  const [, roots] = await settleAll([changes.insertTransactions(transactions, number), executor.finish(transactions)]);
  return roots;
}

/**
 * Executes the next block with these transactions and rolls back. Returns its header, without the proposer.
 *
 * @throws RpcError INVALID_REQUEST if the transactions do not form a valid successor of the previous block.
 */
export async function dryRunNext<State>(
  transactions: readonly VerifiedTransaction[],
  timestampMs: bigint,
  previous: ChainHead,
  deps: BlockDeps<State>,
): Promise<Omit<UnsignedHeader, "proposer">> {
  const { store, executor, nowMs } = deps;
  checkTime(timestampMs, previous, nowMs);
  const header = { ...positionAfter(previous), timestampMs };
  let roots: BlockRoots | undefined;
  const rollback = new Error("The block can be applied.");
  await store
    .write(previous, async (changes, state) => {
      roots = await executeAll(header, transactions, startExecution(executor, header, state), changes);
      throw rollback;
    })
    .catch((error: unknown) => {
      if (error !== rollback) {
        throw error;
      }
    });
  return { ...header, ...roots!, transactionsHash: hashOfHashes(transactions.map(({ hash }) => hash)) };
}

/** Returns the header fields that make a block the successor of another one. */
export function positionAfter({ number, hash, genesisHash }: ChainHead) {
  return { number: number + 1n, previousHash: hash, genesisHash };
}

function checkTime(timestampMs: bigint, previous: ChainHead, nowMs: () => number): void {
  if (timestampMs < previous.timestampMs || Number(timestampMs) > nowMs() + maxAheadMs) {
    throw new RpcError("INVALID_REQUEST", "The block's time is before that of the previous block, or in the future.");
  }
}

/** Throws RpcError INVALID_REQUEST if the roots after execution differ from the header. */
function checkRoots(header: BlockHeader, { commitmentRoot, stateRoot }: BlockRoots): void {
  if (commitmentRoot !== header.commitmentRoot) {
    throw new RpcError(
      "INVALID_REQUEST",
      `The block's commitment root is ${header.commitmentRoot ?? "unchanged"}, but this node computes ${commitmentRoot ?? "no change"}.`,
    );
  }
  if (stateRoot !== header.stateRoot) {
    throw new RpcError(
      "INVALID_REQUEST",
      `The block's state root is ${header.stateRoot}, but this node computes ${stateRoot}.`,
    );
  }
}

/** Starts the execution of the block with this header. */
export function startExecution<State>(
  executor: Executor<State>,
  { number, timestampMs }: Pick<BlockHeader, "number" | "timestampMs">,
  state: State,
): BlockExecutor {
  return executor.start({ number, timeMs: Number(timestampMs) }, state);
}
