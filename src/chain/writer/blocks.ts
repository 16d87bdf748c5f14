/**
 * Next block of the chain: received from another node and applied, or built from pending transactions. A block is
 * stored atomically with its changes of the state.
 */
import { settleAll } from "../../base/async/settle-all.js";
import { isDatabaseError } from "../../base/errors/database-error-kind.js";
import { sha256 } from "../../base/crypto/hash.js";
import type { BlockHeader, Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { mapYielding } from "../../base/async/yielding.js";
import { RpcError } from "../../rpc/errors.js";
import type { BlockExecutor, Executor } from "../transactions/executor.js";
import type { Genesis } from "../blocks/genesis.js";
import { startInclusion, type Inclusion } from "./inclusion.js";
import type { ChainChanges, ChainHead, ChainStore } from "../blocks/store.js";
import {
  type BlockInVerification,
  type BlockRoots,
  type ChainRules,
  hashOfHashes,
  type VerifiedBlock,
  type VerifiedTransaction,
  verifyTransaction,
  signBlock,
  type UnsignedHeader,
} from "../transactions/transaction.js";
import { maxBlockCost } from "../transactions/cost.js";

/** Dependencies to execute and store blocks. */
export interface BlockDeps<State> {
  readonly store: ChainStore<State>;
  readonly genesis: Genesis | undefined;
  readonly executor: Executor<State>;
  readonly nowMs: () => number;
  /** Called when a transaction is rejected for an unexpected error rather than for breaking a rule. */
  readonly onUnexpected: (error: unknown, hash: string) => void;
}

/** Key pair of an authority, which signs blocks. */
export interface AuthorityKey {
  readonly publicKey: string;
  sign(bytes: Uint8Array): Uint8Array;
}

/** Limits on a block that this node builds: number of transactions, and bytes of their bodies. */
export const maxBlockTransactions = 1_000;
export const targetBlockBytes = 3 * 1024 * 1024;
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
  changes: ChainChanges,
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
function positionAfter({
  number,
  hash,
  genesisHash,
}: ChainHead): Pick<BlockHeader, "number" | "previousHash" | "genesisHash"> {
  return { number: number + 1n, previousHash: hash, genesisHash };
}

function checkTime(timestampMs: bigint, previous: ChainHead, nowMs: () => number): void {
  if (timestampMs < previous.timestampMs || Number(timestampMs) > nowMs() + maxAheadMs) {
    throw new RpcError("INVALID_REQUEST", "The block's time is before that of the previous block, or in the future.");
  }
}

/**
 * Checks that the roots after execution match the header.
 *
 * @throws RpcError INVALID_REQUEST if they differ.
 */
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

/** Result of building a block. */
export interface BuildResult {
  /** Undefined if no transaction could be included. */
  readonly block: VerifiedBlock | undefined;
  /** Reasons of permanent rejections, by transaction hash. */
  readonly rejected: ReadonlyMap<string, string>;
  /** Number of senders with a transaction that is deferred to a later block, because it requires a busy resource. */
  readonly deferredCount: number;
}

/** Input of a block to build. */
export interface BuildInput {
  /** Pending transactions in fair order. */
  readonly candidates: readonly Transaction[];
  readonly rules: ChainRules;
  /** Block time, raised to that of the previous block if earlier. */
  readonly timeMs: number;
}

/** Builds a block and applies it. A transaction that throws is rejected, unless the database is unavailable. */
export async function buildNext<State>(
  key: AuthorityKey,
  previous: ChainHead,
  { candidates, rules, timeMs }: BuildInput,
  deps: BlockDeps<State>,
): Promise<BuildResult> {
  const { store, executor } = deps;
  const header = {
    ...positionAfter(previous),
    timestampMs: BigInt(Math.max(timeMs, Number(previous.timestampMs))),
    proposer: key.publicKey,
  };
  const rejected = new Map<string, string>();
  const valid = await verifyCandidates(candidates, rules, rejected);
  return await store.write(previous, async (changes, state) => {
    const execution = startExecution(executor, header, state);
    const { included, deferredCount } = await fillBlock({
      inclusion: await startInclusion(changes, valid, execution, Number(header.timestampMs)),
      changes,
      rejected,
      onUnexpected: deps.onUnexpected,
    });
    if (included.length === 0) {
      return { block: undefined, rejected, deferredCount };
    }
    const [, roots] = await settleAll([
      changes.insertTransactions(included, header.number),
      execution.finish(included),
    ]);
    const block = signBlock({ ...header, ...roots }, included, (bytes) => key.sign(bytes));
    await changes.insertBlock(block);
    return { block, rejected, deferredCount };
  });
}

/** Reason of rejection for a transaction that failed with an unexpected error. */
export const cannotBeApplied = "The transaction cannot be applied.";

/** Returns the valid candidates, and adds the others to `rejected`. */
async function verifyCandidates(
  candidates: readonly Transaction[],
  rules: ChainRules,
  rejected: Map<string, string>,
): Promise<VerifiedTransaction[]> {
  const verified = await mapYielding(candidates, (signed) => {
    try {
      return verifyTransaction(signed, rules);
    } catch (error) {
      rejected.set(sha256(signed.body), (error as Error).message);
      return undefined;
    }
  });
  return verified.filter((transaction) => transaction !== undefined);
}

interface FillDeps {
  readonly inclusion: Inclusion;
  readonly changes: ChainChanges;
  /** Receives the reason of each permanent rejection, by transaction hash. */
  readonly rejected: Map<string, string>;
  readonly onUnexpected: (error: unknown, hash: string) => void;
}

/**
 * Includes transactions up to the limits of a block. After a temporary rejection, defers the transaction and all later
 * ones of the same sender.
 */
async function fillBlock({
  inclusion,
  changes,
  rejected,
  onUnexpected,
}: FillDeps): Promise<{ included: VerifiedTransaction[]; deferredCount: number }> {
  const included: VerifiedTransaction[] = [];
  const deferred = new Set<string>();
  let sizeBytes = 0;
  for await (const transaction of inclusion.inOrder()) {
    const { hash, body, signed } = transaction;
    if (deferred.has(body.sender)) {
      continue;
    }
    if (
      included.length > 0 &&
      (sizeBytes + signed.body.length > targetBlockBytes || inclusion.cost() >= maxBlockCost)
    ) {
      break;
    }
    try {
      await inclusion.include(transaction);
      sizeBytes += signed.body.length;
      included.push(transaction);
    } catch (error) {
      if (isDatabaseError(error) || !(error instanceof RpcError || (await changes.isUsable()))) {
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

function startExecution<State>(
  executor: Executor<State>,
  { number, timestampMs }: Pick<BlockHeader, "number" | "timestampMs">,
  state: State,
): BlockExecutor {
  return executor.start({ number, timeMs: Number(timestampMs) }, state);
}
