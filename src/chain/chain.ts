/**
 * The chain: the only way in which the state of the node changes. Blocks are applied one after the other, each in
 * one database transaction: all of its effects, or none.
 */
import type { Block, SignedHead, Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { isDatabaseError } from "../base/errors/database-error-kind.js";
import { mapYielding } from "../base/async/yielding.js";
import { RpcError } from "../rpc/errors.js";
import { applyNext, type BlockParts, dryRunNext, type Made, type SealingKey } from "./writer/blocks.js";
import { createBlockBuilder } from "./writer/block-builder.js";
import { FencedError } from "./blocks/fenced-error.js";
import { signHead } from "./writer/head-statements.js";
import { checkLifetime, checkNonce } from "./writer/inclusion.js";
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

/** What the chain needs. */
export interface ChainDeps<State> extends BlockParts<State> {
  readonly mempool: Mempool;
  /** The newest block; undefined when the stored chain cannot be followed. */
  readonly head: ChainHead | undefined;
  /** Looks at large transactions in another thread; where it is left out, that is done here. */
  readonly checkAside?: CheckOffThread;
  /** Hears of a block that its proposer has signed, and that cannot be applied. */
  readonly onRefused?: (signed: SignedHeader) => void;
  /** Hears of a block once it is in the database, before anybody else does. */
  readonly onApplied: (block: VerifiedBlock) => void;
  /** Is waited for after a block, before the next one. It does not throw. */
  readonly beforeNext?: (number: bigint) => Promise<void>;
}

/** The chain. */
export interface Chain {
  /** The newest block; undefined while there is none. */
  head(): ChainHead | undefined;
  /**
   * Hears that somebody is about to hand in a transaction of so many bytes.
   *
   * @throws Failure RATE_LIMITED, OVERLOADED as `submit` would.
   */
  announce(bytes: number, from: Handed): void;
  /**
   * Puts a transaction into the mempool and gives its hash.
   *
   * @param from left out for this node itself, which no share or rate holds for.
   * @throws Failure INVALID_REQUEST, INVALID_SIGNATURE, PERMISSION_DENIED, RATE_LIMITED, OVERLOADED, STATE_NOT_READY
   */
  submit(transaction: Transaction, from?: Handed): Promise<string>;
  /**
   * Applies the next block; one that is applied already changes nothing. Gives its hash.
   *
   * @throws Failure INVALID_REQUEST, INVALID_SIGNATURE, STATE_NOT_READY
   */
  apply(block: Block): Promise<string>;
  /**
   * Works out the next block and takes it back: gives what its header has to say, but for the proposer.
   *
   * @throws Failure INVALID_REQUEST, INVALID_SIGNATURE, STATE_NOT_READY
   */
  dryRun(transactions: readonly Transaction[], timestampMs: bigint): Promise<Omit<UnsignedHeader, "proposer">>;
  /**
   * Makes a block of what is pending, if anything is, and applies it. Rejects when that fails; then the next try is made
   * with fewer transactions, unless it is the database that is in trouble.
   *
   * @param timeMs its time, unless that of the block before is later; now, when left out.
   */
  seal(key: SealingKey, timeMs?: number): Promise<Made>;
  /**
   * Says by a key that the newest block is that at this time, after it has looked that it is the newest one of the database
   * and that this node may write. Rejects as a block would.
   */
  signHead(key: SealingKey, timeMs: number): Promise<SignedHead>;
}

/** A chain that this node writes. */
export interface WrittenChain extends Chain {
  /**
   * Checks that this node may write still, and that its newest block is that of the database; that is in each block as
   * well. Rejects with a FencedError when it is not so.
   */
  confirm(): Promise<void>;
  /** Goes on from another block, which is the newest one in the database; from none while that is being filled. */
  goOnFrom(head: ChainHead | undefined): Promise<void>;
  /** The transactions of older blocks than this are not there any more. */
  setLowest(number: bigint): void;
}

/** Builds the chain. */
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

  /** Goes on from a block that is in the database, if there is one, and without the transactions that were rejected. */
  async function follow(block: VerifiedBlock | undefined, rejected: Made["rejected"] = new Map()): Promise<void> {
    if (block !== undefined) {
      head.follow(block);
      await deps.beforeNext?.(block.header.number);
    }
    await mempool.settle(block?.transactions.map(({ hash }) => hash) ?? [], rejected);
  }

  /** Takes up the block after the newest one, if that is in the database: nobody but this node writes, so it is its own. */
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
      // Its turn is from now on, however long reading it takes: a block that is read sooner may be the one after it.
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

/** Takes transactions into the mempool. */
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

/** The newest block, as far as this node knows. */
function createNewest(deps: Pick<ChainDeps<never>, "head" | "genesis" | "onApplied">) {
  const { onApplied } = deps;
  let newest = deps.head;

  /** @throws Failure STATE_NOT_READY while there is none. */
  function need(): ChainHead {
    if (newest === undefined) {
      throw new RpcError(
        "STATE_NOT_READY",
        deps.genesis === undefined
          ? "The node has no chain yet; start it with --genesis FILE."
          : "The node has no state yet: it takes in a snapshot.",
      );
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
    /** A block is in the database. */
    follow(block: VerifiedBlock): void {
      const { genesisHash, lowestBlock } = need();
      const { number, hash, header, signature } = copyHeader(headerOf(block));
      newest = { number, hash, timestampMs: block.header.timestampMs, genesisHash, header, signature, lowestBlock };
      onApplied(block);
    },
  };
}

/**
 * Blocks are made and applied one at a time. One whose storing ended in trouble may have been stored, as when the answer
 * to a commit is lost: that is looked up before the next one.
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

/** What the proposer of a block has signed. */
export function headerOf({ hash, header: { number, proposer }, signed }: VerifiedBlock): SignedHeader {
  return { number, proposer, hash, header: signed.header, signature: signed.signature };
}
