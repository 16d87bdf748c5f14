/** Builds the next block from the mempool, and finds the transaction that makes a block fail. */
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { mapYielding } from "../../base/async/yielding.js";
import { settleAll } from "../../base/async/settle-all.js";
import { sha256 } from "../../base/crypto/hash.js";
import { isDatabaseError } from "../../base/errors/database-error-kind.js";
import { RpcError } from "../../rpc/errors.js";
import { type BlockDeps, positionAfter, startExecution } from "./blocks.js";
import { type Inclusion, startInclusion } from "./inclusion.js";
import type { BlockChanges } from "../blocks/block-store.js";
import type { ChainHead } from "../blocks/store-types.js";
import type { Mempool } from "../mempool/mempool.js";
import { maxBlockCost } from "../transactions/executor.js";
import {
  type ChainRules,
  signBlock,
  type VerifiedBlock,
  type VerifiedTransaction,
  verifyTransaction,
} from "../transactions/transaction.js";

/** Key pair of an authority, which signs blocks. */
export interface AuthorityKey {
  readonly publicKey: string;
  sign(bytes: Uint8Array): Uint8Array;
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

/** Limits on a block that this node builds: number of transactions, and bytes of their bodies. */
const maxBlockTransactions = 1_000;
const targetBlockBytes = 3 * 1024 * 1024;

/** Reason of rejection for a transaction that failed with an unexpected error. */
export const cannotBeApplied = "The transaction cannot be applied.";

/**
 * Creates the function that builds the block after a head.
 *
 * If a block fails for an unexpected error, the next attempt uses half as many transactions. Once a single transaction
 * fails alone, it is rejected. Errors of an unavailable database reject no transaction.
 */
export function createBlockBuilder<State>(
  deps: BlockDeps<State> & { readonly mempool: Pick<Mempool, "candidates"> },
  rules: ChainRules,
): (key: AuthorityKey, head: ChainHead, timeMs: number) => Promise<BuildResult> {
  const { mempool, onUnexpected } = deps;
  let limit = maxBlockTransactions;

  /**
   * Builds a block from candidates in fair order, and applies it. A transaction that throws is rejected, unless the
   * database is unavailable. The time is raised to that of the previous block if earlier.
   */
  async function build(
    key: AuthorityKey,
    previous: ChainHead,
    candidates: readonly Transaction[],
    timeMs: number,
  ): Promise<BuildResult> {
    const timestampMs = BigInt(Math.max(timeMs, Number(previous.timestampMs)));
    const header = { ...positionAfter(previous), timestampMs, proposer: key.publicKey };
    const rejected = new Map<string, string>();
    const valid = await verifyCandidates(candidates, rules, rejected);
    return await deps.store.write(previous, async (changes, state) => {
      const execution = startExecution(deps.executor, header, state);
      const inclusion = await startInclusion(changes, valid, execution, Number(timestampMs));
      const { included, deferredCount } = await fillBlock(inclusion, changes, rejected, onUnexpected);
      if (included.length === 0) {
        return { block: undefined, rejected, deferredCount };
      }
      const stored = changes.insertTransactions(included, header.number);
      const [, roots] = await settleAll([stored, execution.finish(included)]);
      const block = signBlock({ ...header, ...roots }, included, (bytes) => key.sign(bytes));
      await changes.insertBlock(block);
      return { block, rejected, deferredCount };
    });
  }
  return async (key, head, timeMs) => {
    const candidates: Transaction[] = [];
    for await (const portion of mempool.candidates({ count: limit, bytes: targetBlockBytes })) {
      candidates.push(...portion.map(({ transaction }) => transaction));
    }
    const [first, ...others] = candidates;
    if (first === undefined) {
      return { block: undefined, rejected: new Map(), deferredCount: 0 };
    }
    try {
      const built = await build(key, head, candidates, timeMs);
      limit = Math.min(2 * limit, maxBlockTransactions);
      return built;
    } catch (error) {
      if (isDatabaseError(error)) {
        throw error;
      }
      if (others.length > 0) {
        limit = Math.ceil(candidates.length / 2);
        throw error;
      }
      const hash = sha256(first.body);
      onUnexpected(error, hash);
      return { block: undefined, rejected: new Map([[hash, cannotBeApplied]]), deferredCount: 0 };
    }
  };
}

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

/**
 * Includes transactions up to the limits of a block. After a temporary rejection, defers the transaction and all later
 * ones of the same sender. Adds the reason of each permanent rejection to `rejected`, by transaction hash.
 */
async function fillBlock(
  inclusion: Inclusion,
  changes: BlockChanges,
  rejected: Map<string, string>,
  onUnexpected: (error: unknown, hash: string) => void,
) {
  const included: VerifiedTransaction[] = [];
  const deferred = new Set<string>();
  let sizeBytes = 0;
  for await (const transaction of inclusion.inOrder()) {
    const { hash, body, signed } = transaction;
    if (deferred.has(body.sender)) {
      continue;
    }
    const isFull = sizeBytes + signed.body.length > targetBlockBytes || inclusion.cost() >= maxBlockCost;
    if (isFull && included.length > 0) {
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
      if (!(error instanceof RpcError)) {
        onUnexpected(error, hash);
        rejected.set(hash, cannotBeApplied);
      } else if (error.kind.transient) {
        deferred.add(body.sender);
      } else {
        rejected.set(hash, error.message);
      }
    }
  }
  return { included, deferredCount: deferred.size };
}
