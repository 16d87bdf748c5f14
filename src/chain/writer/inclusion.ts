/** Inclusion of transactions in a block: checks duplicates, nonces, expiry and cost, then executes. */
import type { TransactionBody } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { eachYielding, yieldToEventLoop } from "../../base/async/yielding.js";
import { RpcError } from "../../rpc/errors.js";
import type { BlockExecutor } from "../transactions/executor.js";
import type { ChainChanges } from "../blocks/store.js";
import type { VerifiedTransaction } from "../transactions/transaction.js";
import { maxBlockCost, costOf } from "../transactions/cost.js";

/** Number of transactions whose state is prefetched at once: up to one document of 16 KiB for each of them. */
const prefetchCount = 32;

/** Block in progress, to which transactions are added one at a time. */
export interface Inclusion {
  /**
   * Yields the transactions in order. Prefetches their state in batches and yields to the event loop between batches.
   */
  inOrder(): AsyncIterable<VerifiedTransaction>;
  /** Executes the next transaction. Throws RpcError if it cannot be included; the state is then unchanged. */
  include(transaction: VerifiedTransaction): Promise<void>;
  /** Returns the execution cost of the block so far, in bytes. */
  cost(): number;
}

/**
 * Starts a block of these transactions. Reads which of them are in earlier blocks, and the last nonces of their
 * senders.
 *
 * @param timeMs timestamp of the block.
 */
export async function startInclusion(
  changes: ChainChanges,
  transactions: readonly VerifiedTransaction[],
  executor: BlockExecutor,
  timeMs: number,
): Promise<Inclusion> {
  const included = await changes.included(transactions.map(({ hash }) => hash));
  const nonces = await changes.lastNonces([...new Set(transactions.map(({ body }) => body.sender))]);
  let cost = 0;
  return {
    async *inOrder() {
      for (let i = 0; i < transactions.length; i += prefetchCount) {
        const next = transactions.slice(i, i + prefetchCount);
        await executor.prefetch(next);
        yield* eachYielding(next);
        await yieldToEventLoop();
      }
    },
    async include(transaction) {
      const { hash, body, signed } = transaction;
      if (cost >= maxBlockCost) {
        throw new RpcError(
          "INVALID_REQUEST",
          `The block's cost is higher than the limit of ${maxBlockCost} bytes touched.`,
        );
      }
      if (included.has(hash)) {
        throw new RpcError("INVALID_REQUEST", "The transaction is in a block already.");
      }
      checkNonce(body.nonce, nonces.get(body.sender));
      checkExpiry(body, timeMs);
      cost += costOf(signed.body.length, await executor.apply(transaction));
      included.add(hash);
      nonces.set(body.sender, body.nonce);
    },
    cost: () => cost,
  };
}

/**
 * Checks that a nonce is higher than the sender's last one.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function checkNonce(nonce: bigint, lastNonce: bigint | undefined): void {
  if (lastNonce !== undefined && nonce <= lastNonce) {
    throw new RpcError(
      "INVALID_REQUEST",
      `The nonce ${nonce} is already used: the sender's next nonce must be above ${lastNonce}.`,
    );
  }
}

/**
 * Checks that a transaction has not expired at a time.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function checkExpiry({ expiresMs }: Pick<TransactionBody, "expiresMs">, timeMs: number): void {
  if (Number(expiresMs) < timeMs) {
    throw new RpcError("INVALID_REQUEST", `The transaction expired at ${toTime(expiresMs)}.`);
  }
}

/** Limit on the time until a transaction expires. */
const maxLifetimeMs = 3_600_000;
/** Time by which the clock of a client may be ahead. */
const clockSkewMs = 60_000;

/**
 * Checks that a transaction has not expired, and that it expires within the limit.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function checkLifetime(body: Pick<TransactionBody, "expiresMs">, nowMs: number): void {
  checkExpiry(body, nowMs);
  if (Number(body.expiresMs) > nowMs + maxLifetimeMs + clockSkewMs) {
    throw new RpcError("INVALID_REQUEST", `A transaction must expire within ${maxLifetimeMs / 60_000} minutes.`);
  }
}

function toTime(ms: bigint): string {
  const time = new Date(Number(ms));
  return Number.isNaN(time.getTime()) ? `${ms} ms` : time.toISOString();
}
