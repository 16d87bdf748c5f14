/** Inclusion of transactions in a block: checks duplicates, nonces, expiry and cost, then executes. */
import type { TransactionBody } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { eachYielding, yieldToEventLoop } from "../../base/async/yielding.js";
import { RpcError } from "../../rpc/errors.js";
import { type BlockExecutor, maxBlockCost, costOf } from "../transactions/executor.js";
import type { BlockChanges } from "../blocks/block-store.js";
import type { VerifiedTransaction } from "../transactions/transaction.js";

/** Number of transactions whose state is prefetched at once: up to one document of 16 KiB for each of them. */
const prefetchCount = 32;

/** Block in progress, to which transactions are added one at a time. */
export type Inclusion = Awaited<ReturnType<typeof startInclusion>>;

/**
 * Starts a block of these transactions. Reads which of them are in earlier blocks, and the last nonces of their
 * senders.
 *
 * @param timeMs timestamp of the block.
 */
export async function startInclusion(
  changes: BlockChanges,
  transactions: readonly VerifiedTransaction[],
  executor: BlockExecutor,
  timeMs: number,
) {
  const included = await changes.included(transactions.map(({ hash }) => hash));
  const nonces = await changes.lastNonces([...new Set(transactions.map(({ body }) => body.sender))]);
  let cost = 0;
  return {
    /**
     * Yields the transactions in order. Prefetches their state in batches and yields to the event loop between batches.
     */
    async *inOrder(): AsyncGenerator<VerifiedTransaction, void> {
      for (let i = 0; i < transactions.length; i += prefetchCount) {
        const next = transactions.slice(i, i + prefetchCount);
        await executor.prefetch(next);
        yield* eachYielding(next);
        await yieldToEventLoop();
      }
    },

    /** Executes the next transaction. Throws RpcError if it cannot be included; the state is then unchanged. */
    async include(transaction: VerifiedTransaction): Promise<void> {
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

    /** Returns the execution cost of the block so far, in bytes. */
    cost: () => cost,
  };
}

/** Throws RpcError INVALID_REQUEST unless a nonce is higher than the sender's last one. */
export function checkNonce(nonce: bigint, lastNonce: bigint | undefined): void {
  if (lastNonce !== undefined && nonce <= lastNonce) {
    throw new RpcError(
      "INVALID_REQUEST",
      `The nonce ${nonce} is already used: the sender's next nonce must be above ${lastNonce}.`,
    );
  }
}

/** Throws RpcError INVALID_REQUEST if a transaction has expired at a time. */
function checkExpiry({ expiresMs }: Pick<TransactionBody, "expiresMs">, timeMs: number): void {
  if (Number(expiresMs) < timeMs) {
    throw new RpcError("INVALID_REQUEST", `The transaction expired at ${toTime(expiresMs)}.`);
  }
}

/** Limit on the time until a transaction expires. */
const maxLifetimeMs = 3_600_000;
/** Time by which the clock of a client may be ahead. */
const clockSkewMs = 60_000;

/** Throws RpcError INVALID_REQUEST if a transaction has expired, or expires later than the limit permits. */
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
