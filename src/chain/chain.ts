/**
 * Chain of blocks: the only way to change the state of the node. Blocks are applied one at a time, each atomically in
 * one database transaction.
 */
import type { Block, SignedHead, Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { isDatabaseError } from "../base/errors/database-error-kind.js";
import { mapYielding } from "../base/async/yielding.js";
import { applyNext, type BlockParts, dryRunNext, type Made, type SealingKey } from "./writer/blocks.js";
import { createBlockBuilder } from "./writer/block-builder.js";
import { FencedError } from "./blocks/fenced-error.js";
import { signHead } from "./writer/head-statements.js";
import { checkLifetime, checkNonce } from "./writer/inclusion.js";
import { noLatestBlock } from "./blocks/no-latest-block.js";
import type { Mempool } from "./mempool/mempool.js";
import type { Handed } from "./mempool/mempool-intake.js";
import {
  type CheckOffThread,
  createKnownTransactions,
  verifyOffThread,
  type Reading,
} from "./transactions/off-thread-checks.js";
import { copyHeader, type SignedHeader } from "./blocks/signed-headers.js";
import type { ChainHead } from "./blocks/store.js";
import {
  beginBlock,
  type VerifiedBlock,
  verifyBlock,
  readTransaction,
  type UnsignedHeader,
} from "./transactions/transaction.js";

export interface ChainDeps<State> extends BlockParts<State> {
  readonly mempool: Mempool;
  /** Latest block at start; undefined if the node has no state yet. */
  readonly head: ChainHead | undefined;
  /** Verifies large transactions on another thread. If omitted, they are verified on the calling thread. */
  readonly checkAside?: CheckOffThread;
  /** Called when a block with a valid proposer signature cannot be applied. */
  readonly onRefused?: (signed: SignedHeader) => void;
  /** Called once a block is in the database, before any caller or subscriber learns of the block. */
  readonly onApplied: (block: VerifiedBlock) => void;
  /** Called after each block; the next block waits until the promise resolves. Must not throw. */
  readonly beforeNext?: (number: bigint) => Promise<void>;
}

export interface Chain {
  /** Returns the latest block; undefined while the node has no state. */
  head(): ChainHead | undefined;
  /**
   * Checks admission of a transaction from its size, before its body is received.
   *
   * @throws RpcError RATE_LIMITED or OVERLOADED, if `submit` would throw the same for any transaction of this size.
   */
  announce(bytes: number, from: Handed): void;
  /**
   * Adds a transaction to the mempool. Returns its hash once it is stored.
   *
   * @param from omitted for the node's own transactions, which are exempt from quotas and rates.
   * @throws RpcError INVALID_REQUEST, INVALID_SIGNATURE, PERMISSION_DENIED, RATE_LIMITED, OVERLOADED, STATE_NOT_READY
   */
  submit(transaction: Transaction, from?: Handed): Promise<string>;
  /**
   * Applies the next block and returns its hash. Returns the hash without changes if the block is already applied.
   *
   * @throws RpcError INVALID_REQUEST, INVALID_SIGNATURE, STATE_NOT_READY
   */
  apply(block: Block): Promise<string>;
  /**
   * Executes the next block, rolls back, and returns its header without the proposer.
   *
   * @throws RpcError INVALID_REQUEST, INVALID_SIGNATURE, STATE_NOT_READY
   */
  dryRun(transactions: readonly Transaction[], timestampMs: bigint): Promise<Omit<UnsignedHeader, "proposer">>;
  /**
   * Builds a block from pending transactions, if there are any, and applies it. Rejects on failure. The next attempt
   * then uses fewer transactions, unless the database was unavailable.
   *
   * @param timeMs block time, raised to that of the previous block if earlier. Default: now.
   */
  seal(key: SealingKey, timeMs?: number): Promise<Made>;
  /**
   * Signs a statement that the current head is the latest block at the given time. First confirms that the head is the
   * latest block in the database and that this node may write. Rejects with the errors of a block write.
   */
  signHead(key: SealingKey, timeMs: number): Promise<SignedHead>;
}

/** Chain of a node that writes. */
export interface WrittenChain extends Chain {
  /**
   * Confirms that this node may still write and that its head is the latest block in the database. Each block write
   * makes the same check. Rejects with a FencedError.
   */
  confirm(): Promise<void>;
  /** Replaces the head with the latest block in the database; undefined while a snapshot sync fills the database. */
  goOnFrom(head: ChainHead | undefined): Promise<void>;
  /** Sets the number of the oldest block whose transactions are retained. */
  setLowest(number: bigint): void;
}

/** Creates the chain of a node that writes. */
export function createChain<State>(deps: ChainDeps<State>): WrittenChain {
  const { store, mempool, nowMs } = deps;
  const head = createNewest(deps);
  const reading: Reading = {
    network: deps.genesis?.hash ?? "",
    checkOperation: (operation) => deps.effects.checkOperation(operation),
    known: createKnownTransactions(),
    checkAside: deps.checkAside,
  };
  const makeBlock = createBlockBuilder(deps, reading);

  /**
   * Advances the head to a stored block, if given, and removes its transactions and the rejected ones from the mempool.
   */
  async function follow(block: VerifiedBlock | undefined, rejected: Made["rejected"] = new Map()): Promise<void> {
    if (block !== undefined) {
      head.follow(block);
      await deps.beforeNext?.(block.header.number);
    }
    await mempool.settle(block?.transactions.map(({ hash }) => hash) ?? [], rejected);
  }

  /**
   * Adopts the block after the head, if the database has one. Only this node writes, so the block is its own, stored by
   * a commit whose outcome was lost.
   */
  async function takeUpStored(): Promise<void> {
    const before = head.known();
    const stored = before && (await store.block(before.number + 1n));
    const block = stored && (await verifyBlock(stored.block, reading));
    if (block !== undefined && block.header.previousHash === before?.hash) {
      await follow(block);
    }
  }
  const inTurn = createBlockTurns(takeUpStored);

  const confirm = (): Promise<void> => store.write(head.known(), () => Promise.resolve());

  return {
    head: () => head.known(),

    confirm: () => inTurn(confirm),

    signHead: (key, timeMs) =>
      inTurn(async () => {
        const newest = head.need();
        await confirm();
        return signHead(newest, key, timeMs);
      }),

    goOnFrom: (next) =>
      inTurn(() => {
        head.set(next);
        return Promise.resolve();
      }),
    setLowest: (number) => head.setLowest(number),

    announce: (bytes, { origin }) => mempool.announce(bytes, origin),

    submit: createSubmit(deps, head, reading, () => inTurn(() => Promise.resolve())),

    async apply(signed) {
      head.need();
      const beginning = beginBlock(signed, reading);
      // Each block takes its position in the queue on arrival. Otherwise, a successor that is verified faster would
      // overtake.
      beginning.catch(() => undefined);
      return await inTurn(async () => {
        const inReading = await beginning;
        const { block } = inReading;
        const before = head.need();
        if (block.header.number <= before.number && (await store.header(block.header.number))?.hash === block.hash) {
          await inReading.signatures;
          return block.hash;
        }
        try {
          await applyNext(inReading, before, deps);
        } catch (error) {
          deps.onRefused?.(headerOf(block));
          throw error;
        }
        await follow(block);
        return block.hash;
      });
    },

    async dryRun(signed, timestampMs) {
      head.need();
      const transactions = await mapYielding(signed, (one) => readTransaction(one, reading));
      return await inTurn(() => dryRunNext(transactions, timestampMs, head.need(), deps));
    },

    seal: (key, timeMs = nowMs()) =>
      inTurn(async () => {
        const made = await makeBlock(key, head.need(), timeMs);
        await follow(made.block, made.rejected);
        return made;
      }),
  };
}

/** Creates the function that verifies transactions and adds them to the mempool. */
function createSubmit<State>(
  { store, mempool, effects, nowMs }: ChainDeps<State>,
  head: ReturnType<typeof createNewest>,
  reading: Reading,
  untilBlock: () => Promise<void>,
): Chain["submit"] {
  return async (signed, from = {}) => {
    head.need();
    mempool.arrive(signed.body.length, from.origin);
    const transaction = await verifyOffThread(signed, reading);
    const { hash, body } = transaction;
    const check = async (): Promise<bigint | undefined> => {
      checkLifetime(body, nowMs());
      const lastNonce = await store.lastNonce(body.sender);
      checkNonce(body.nonce, lastNonce);
      const { number, timestampMs } = head.need();
      const timeMs = Math.max(nowMs(), Number(timestampMs));
      await effects.check(transaction, { number: number + 1n, timeMs });
      return lastNonce;
    };
    await mempool.admit(transaction, from, { check, untilBlock });
    return hash;
  };
}

/** Creates the holder of the latest block. */
function createNewest(deps: Pick<ChainDeps<never>, "head" | "genesis" | "onApplied">) {
  const { onApplied } = deps;
  let newest = deps.head;

  /**
   * Returns the latest block.
   *
   * @throws RpcError STATE_NOT_READY if the node has no chain, or while a snapshot sync runs.
   */
  function need(): ChainHead {
    if (newest === undefined) {
      throw noLatestBlock(deps.genesis !== undefined);
    }
    return newest;
  }

  return {
    known: () => newest,
    need,
    set(head: ChainHead | undefined): void {
      newest = head;
    },
    setLowest(lowestBlock: bigint): void {
      newest = newest && { ...newest, lowestBlock };
    },
    /** Makes a stored block the head and reports it. */
    follow(block: VerifiedBlock): void {
      const { genesisHash, lowestBlock } = need();
      const { number, hash, header, signature } = copyHeader(headerOf(block));
      newest = { number, hash, timestampMs: block.header.timestampMs, genesisHash, header, signature, lowestBlock };
      onApplied(block);
    },
  };
}

/**
 * Creates the queue that builds and applies blocks one at a time. A block whose write failed with a database error may
 * still be stored, for example if the response to the commit was lost. The next task checks for such a block first.
 */
function createBlockTurns(takeUpStored: () => Promise<void>) {
  let last: Promise<unknown> = Promise.resolve();
  let mayHaveStored = false;

  async function begin(): Promise<void> {
    if (mayHaveStored) {
      await takeUpStored();
      mayHaveStored = false;
    }
  }

  return <T>(work: () => Promise<T>): Promise<T> => {
    const result = last.then(begin).then(work);
    last = result.catch((error: unknown) => {
      const isKeptOut = error instanceof FencedError && error.reason !== "newest";
      mayHaveStored ||= isDatabaseError(error) && !isKeptOut;
    });
    return result;
  };
}

/** Returns the part of a block that its proposer signed. */
export function headerOf({ hash, header: { number, proposer }, signed }: VerifiedBlock): SignedHeader {
  return { number, proposer, hash, header: signed.header, signature: signed.signature };
}
