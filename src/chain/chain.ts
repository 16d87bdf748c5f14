/**
 * Chain of blocks: the only way to change the state of the node. Blocks are applied one at a time, each atomically in
 * one database transaction.
 */
import type { Block, SignedHead, Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { isDatabaseError } from "../base/errors/database-error-kind.js";
import { mapYielding } from "../base/async/yielding.js";
import { type AuthorityKey, type BuildResult, createBlockBuilder } from "./writer/block-builder.js";
import { applyNext, type BlockDeps, dryRunNext } from "./writer/blocks.js";
import { FencedError, type ChainHead } from "./blocks/store-types.js";
import { signHead } from "./writer/head-statements.js";
import { checkLifetime, checkNonce } from "./writer/inclusion.js";
import { noLatestBlock } from "./blocks/retained-blocks.js";
import type { Mempool } from "./mempool/mempool.js";
import type { SubmissionSource } from "./mempool/mempool-intake.js";
import {
  type CheckOffThread,
  createKnownTransactions,
  verifyOffThread,
  type VerificationRules,
} from "./transactions/off-thread-checks.js";
import { copyHeader, type SignedHeader } from "./blocks/evidence.js";
import {
  startBlockVerification,
  type VerifiedBlock,
  verifyBlock,
  verifyTransaction,
  type UnsignedHeader,
} from "./transactions/transaction.js";

export interface ChainDeps<State> extends BlockDeps<State> {
  readonly mempool: Mempool;
  /** Latest block at start; undefined if the node has no state yet. */
  readonly head: ChainHead | undefined;
  /** Verifies large transactions on another thread. If omitted, the calling thread verifies them. */
  readonly checkOffThread?: CheckOffThread;
  /** Called when a received block is signed by its proposer, but cannot be applied. */
  readonly onNotApplied?: (signed: SignedHeader) => void;
  /** Called once a block is in the database, before any caller or subscriber learns of the block. */
  readonly onApplied: (block: VerifiedBlock) => void;
  /** Called after each block; the next block waits until the promise resolves. Must not throw. */
  readonly beforeNext?: (number: bigint) => Promise<void>;
}

/** Chain of a node that writes. */
export type WritableChain = ReturnType<typeof createChain>;
/** Chain of any node. Reads of a read-only one are the same, and its changes reject. */
export type Chain = Omit<WritableChain, "confirm" | "replaceHead" | "setLowest">;

/** Creates the chain of a node that writes. */
export function createChain<State>(deps: ChainDeps<State>) {
  const { store, mempool, executor, nowMs } = deps;
  const rules: VerificationRules = {
    network: deps.genesis?.hash ?? "",
    checkOperation: (operation) => executor.checkOperation(operation),
    known: createKnownTransactions(),
    checkOffThread: deps.checkOffThread,
  };
  const buildBlock = createBlockBuilder(deps, rules);
  let latest = deps.head;

  /** Returns the latest block. Throws RpcError STATE_NOT_READY without a chain, and while a snapshot sync runs. */
  function requireHead(): ChainHead {
    if (latest === undefined) {
      throw noLatestBlock(deps.genesis !== undefined);
    }
    return latest;
  }

  /**
   * Makes a stored block the head, if there is one, and removes its transactions and the rejected ones from the mempool.
   */
  async function advance(
    block: VerifiedBlock | undefined,
    rejected: BuildResult["rejected"] = new Map(),
  ): Promise<void> {
    if (block !== undefined) {
      const { genesisHash, lowestBlock } = requireHead();
      const { number, hash, header, signature } = copyHeader(headerOf(block));
      latest = { number, hash, timestampMs: block.header.timestampMs, genesisHash, header, signature, lowestBlock };
      deps.onApplied(block);
      await deps.beforeNext?.(number);
    }
    await mempool.remove(block?.transactions.map(({ hash }) => hash) ?? [], rejected);
  }

  /**
   * Advances the head to the next block, if the database already has it. Only this node writes, so the block is its
   * own, stored by a commit whose outcome was lost.
   */
  async function advanceToStored(): Promise<void> {
    const previous = latest;
    const stored = previous && (await store.block(previous.number + 1n));
    const block = stored && (await verifyBlock(stored.block, rules));
    if (block !== undefined && block.header.previousHash === previous?.hash) {
      await advance(block);
    }
  }
  const enqueue = createBlockQueue(advanceToStored);

  const confirm = (): Promise<void> => store.write(latest, () => Promise.resolve());

  return {
    /** Returns the latest block; undefined while the node has no state. */
    head: (): ChainHead | undefined => latest,

    /**
     * Checks admission of a transaction from its size, before its body is received.
     *
     * @throws RpcError RATE_LIMITED or OVERLOADED, if `submit` would throw the same for any transaction of this size.
     */
    precheck: (bytes: number, { source }: SubmissionSource): void => mempool.precheck(bytes, source),

    /**
     * Adds a transaction to the mempool. Returns its hash once it is stored.
     *
     * @param from omitted for the node's own transactions, which are exempt from quotas and rates.
     * @throws RpcError INVALID_REQUEST, INVALID_SIGNATURE, PERMISSION_DENIED, RATE_LIMITED, OVERLOADED, STATE_NOT_READY
     */
    async submit(signed: Transaction, from: SubmissionSource = {}): Promise<string> {
      requireHead();
      mempool.countBytes(signed.body.length, from.source);
      const transaction = await verifyOffThread(signed, rules);
      const { hash, body } = transaction;
      await mempool.admit(transaction, from, {
        async check() {
          checkLifetime(body, nowMs());
          const lastNonce = await store.lastNonce(body.sender);
          checkNonce(body.nonce, lastNonce);
          const { number, timestampMs } = requireHead();
          const timeMs = Math.max(nowMs(), Number(timestampMs));
          await executor.check(transaction, { number: number + 1n, timeMs });
          return lastNonce;
        },
        untilBlock: () => enqueue(() => Promise.resolve()),
      });
      return hash;
    },

    /**
     * Applies the next block and returns its hash. Returns the hash without changes if the block is already applied.
     *
     * @throws RpcError INVALID_REQUEST, INVALID_SIGNATURE, STATE_NOT_READY
     */
    async apply(signed: Block): Promise<string> {
      requireHead();
      const started = startBlockVerification(signed, rules);
      // The block is queued before it is verified. Otherwise, a successor that is verified faster would overtake it.
      started.catch(() => undefined);
      return await enqueue(async () => {
        const verification = await started;
        const { block } = verification;
        const head = requireHead();
        if (block.header.number <= head.number && (await store.header(block.header.number))?.hash === block.hash) {
          await verification.signatures;
          return block.hash;
        }
        try {
          await applyNext(verification, head, deps);
        } catch (error) {
          deps.onNotApplied?.(headerOf(block));
          throw error;
        }
        await advance(block);
        return block.hash;
      });
    },

    /**
     * Executes the next block, rolls back, and returns its header without the proposer.
     *
     * @throws RpcError INVALID_REQUEST, INVALID_SIGNATURE, STATE_NOT_READY
     */
    async dryRun(signed: readonly Transaction[], timestampMs: bigint): Promise<Omit<UnsignedHeader, "proposer">> {
      requireHead();
      const transactions = await mapYielding(signed, (transaction) => verifyTransaction(transaction, rules));
      return await enqueue(() => dryRunNext(transactions, timestampMs, requireHead(), deps));
    },

    /**
     * Builds a block from pending transactions, if there are any, and applies it. Rejects on failure. The next attempt
     * then uses fewer transactions, unless the database was unavailable.
     *
     * @param timeMs block time, raised to that of the previous block if earlier. Default: now.
     */
    produceBlock: (key: AuthorityKey, timeMs = nowMs()): Promise<BuildResult> =>
      enqueue(async () => {
        const built = await buildBlock(key, requireHead(), timeMs);
        await advance(built.block, built.rejected);
        return built;
      }),

    /**
     * Signs a statement that the current head is the latest block at the given time. First confirms that the head is the
     * latest block in the database and that this node may write. Rejects with the errors of a block write.
     */
    signHead: (key: AuthorityKey, timeMs: number): Promise<SignedHead> =>
      enqueue(async () => {
        const head = requireHead();
        await confirm();
        return signHead(head, key, timeMs);
      }),

    /**
     * Confirms that this node may still write and that its head is the latest block in the database. Each block write
     * makes the same check. Rejects with a FencedError.
     */
    confirm: (): Promise<void> => enqueue(confirm),

    /** Replaces the head with the latest block in the database; undefined while a snapshot sync fills the database. */
    replaceHead: (next: ChainHead | undefined): Promise<void> =>
      enqueue(() => {
        latest = next;
        return Promise.resolve();
      }),

    /** Sets the number of the oldest block whose transactions are retained. */
    setLowest(lowestBlock: bigint): void {
      latest = latest && { ...latest, lowestBlock };
    },
  };
}

/**
 * Creates the queue that builds and applies blocks one at a time. A block whose write failed with a database error may
 * still be stored, for example if the response to the commit was lost. The next task checks for such a block first.
 */
function createBlockQueue(advanceToStored: () => Promise<void>) {
  let last: Promise<unknown> = Promise.resolve();
  let mayHaveStored = false;

  async function checkStored(): Promise<void> {
    if (mayHaveStored) {
      await advanceToStored();
      mayHaveStored = false;
    }
  }

  return <T>(work: () => Promise<T>): Promise<T> => {
    const result = last.then(checkStored).then(work);
    last = result.catch((error: unknown) => {
      const isFenced = error instanceof FencedError && error.reason !== "latest";
      mayHaveStored ||= isDatabaseError(error) && !isFenced;
    });
    return result;
  };
}

/** Returns the signed header of a block. */
export function headerOf({ hash, header: { number, proposer }, signed }: VerifiedBlock): SignedHeader {
  return { number, proposer, hash, header: signed.header, signature: signed.signature };
}
