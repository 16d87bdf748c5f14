/** Builds the next block from the mempool, and finds the transaction that makes a block fail. */
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { isDatabaseError } from "../../base/errors/database-error-kind.js";
import { sha256 } from "../../base/crypto/hash.js";
import {
  type BlockDeps,
  cannotBeApplied,
  type BuildResult,
  buildNext,
  targetBlockBytes,
  maxBlockTransactions,
  type AuthorityKey,
} from "./blocks.js";
import type { Mempool } from "../mempool/mempool.js";
import type { ChainHead } from "../blocks/store.js";
import type { ChainRules } from "../transactions/transaction.js";

export interface BlockBuilderDeps<State> extends BlockDeps<State> {
  readonly mempool: Pick<Mempool, "candidates">;
}

/**
 * Creates the function that builds the block after a head.
 *
 * If a block fails for an unexpected error, the next attempt uses half as many transactions. Once a single transaction
 * fails alone, it is rejected. Errors of an unavailable database reject no transaction.
 */
export function createBlockBuilder<State>(
  deps: BlockBuilderDeps<State>,
  rules: ChainRules,
): (key: AuthorityKey, head: ChainHead, timeMs: number) => Promise<BuildResult> {
  const { mempool, onUnexpected } = deps;
  let limit = maxBlockTransactions;

  async function collectCandidates(): Promise<Transaction[]> {
    const candidates: Transaction[] = [];
    for await (const portion of mempool.candidates({ count: limit, bytes: targetBlockBytes })) {
      candidates.push(...portion.map(({ transaction }) => transaction));
    }
    return candidates;
  }

  return async (key, head, timeMs) => {
    const candidates = await collectCandidates();
    const [first, ...others] = candidates;
    if (first === undefined) {
      return { block: undefined, rejected: new Map(), deferredCount: 0 };
    }
    try {
      const built = await buildNext(key, head, { candidates, rules, timeMs }, deps);
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
