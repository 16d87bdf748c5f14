/** Which transactions fit into a block. */
import type { TransactionBody } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { eachYielding, yieldToEventLoop } from "../../base/async/yielding.js";
import { RpcError } from "../../rpc/errors.js";
import type { BlockExecutor } from "../transactions/executor.js";
import type { ChainChanges } from "../blocks/store.js";
import type { ReadTransaction } from "../transactions/transaction.js";
import { maxBlockCost, costOf } from "../transactions/cost.js";

/** Transactions that are read ahead for: what each needs is held in memory then, which is a document of 16 KiB at most. */
const aheadTransactions = 32;

/** A block that transactions are put into, one after the other. */
export interface Inclusion {
  /** The transactions, in their order; of some at a time is read ahead what they need, and others have their turn. */
  inTurns(): AsyncIterable<ReadTransaction>;
  /**
   * Makes the effects of the next transaction. Throws a Failure when it does not fit; then nothing changed.
   */
  include(transaction: ReadTransaction): Promise<void>;
  /** Work that was done so far, in bytes touched. */
  work(): number;
}

/**
 * Begins it: learns what transactions have to fit to, of those before them in the chain.
 *
 * @param timeMs time of the block.
 */
export async function beginInclusion(
  changes: ChainChanges,
  transactions: readonly ReadTransaction[],
  effects: BlockExecutor,
  timeMs: number,
): Promise<Inclusion> {
  const included = await changes.included(transactions.map(({ hash }) => hash));
  const nonces = await changes.lastNonces([...new Set(transactions.map(({ body }) => body.sender))]);
  let work = 0;
  return {
    async *inTurns() {
      for (let i = 0; i < transactions.length; i += aheadTransactions) {
        const some = transactions.slice(i, i + aheadTransactions);
        await effects.expect(some);
        yield* eachYielding(some);
        await yieldToEventLoop();
      }
    },
    async include(transaction) {
      const { hash, body, signed } = transaction;
      if (work >= maxBlockCost) {
        throw new RpcError("INVALID_REQUEST", `The block makes more work than ${maxBlockCost} bytes touched.`);
      }
      if (included.has(hash)) {
        throw new RpcError("INVALID_REQUEST", "The transaction is in a block already.");
      }
      checkNonce(body.nonce, nonces.get(body.sender));
      checkExpiry(body, timeMs);
      work += costOf(signed.body.length, await effects.apply(transaction));
      included.add(hash);
      nonces.set(body.sender, body.nonce);
    },
    work: () => work,
  };
}

/**
 * Checks that a nonce is above the last one of its sender.
 *
 * @throws Failure INVALID_REQUEST
 */
export function checkNonce(nonce: bigint, lastNonce: bigint | undefined): void {
  if (lastNonce !== undefined && nonce <= lastNonce) {
    throw new RpcError("INVALID_REQUEST", `The nonce ${nonce} is used: the sender's next one is above ${lastNonce}.`);
  }
}

/**
 * Checks that a transaction has not expired at a time.
 *
 * @throws Failure INVALID_REQUEST
 */
export function checkExpiry({ expiresMs }: Pick<TransactionBody, "expiresMs">, timeMs: number): void {
  if (Number(expiresMs) < timeMs) {
    throw new RpcError("INVALID_REQUEST", `The transaction expired at ${toTime(expiresMs)}.`);
  }
}

/** How far ahead a transaction may expire: for as long, those that were rejected are remembered. */
const maxLifetimeMs = 3_600_000;
/** How far the clocks of clients may be off. */
const clockSkewMs = 60_000;

/**
 * Checks that a transaction may still get into a block, and not for too long.
 *
 * @throws Failure INVALID_REQUEST
 */
export function checkLifetime(body: Pick<TransactionBody, "expiresMs">, nowMs: number): void {
  checkExpiry(body, nowMs);
  if (Number(body.expiresMs) > nowMs + maxLifetimeMs + clockSkewMs) {
    throw new RpcError("INVALID_REQUEST", `A transaction expires within ${maxLifetimeMs / 60_000} minutes.`);
  }
}

function toTime(ms: bigint): string {
  const time = new Date(Number(ms));
  return Number.isNaN(time.getTime()) ? `${ms} ms` : time.toISOString();
}
