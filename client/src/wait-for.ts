/** Follows a transaction into its block. */
import type { Client } from "@connectrpc/connect";
import { type ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { ofTransaction, toGatehouseError } from "./errors.js";
import { GatehouseError } from "./gatehouse-error.js";
import type { Lifetime } from "./lifetime.js";
import { ProofError } from "./proof/proof-error.js";
import { sleep } from "./retry.js";
import type { CallOptions } from "./submit.js";

/** A transaction that is in a block. */
export interface Included {
  readonly hash: string;
  readonly blockNumber: bigint;
}

const usualTimeoutMs = 60_000;
/** The wait between two looks grows, so that many who wait long cost little. */
const firstWaitMs = 100;
const maxWaitMs = 2_000;

/**
 * Waits until a transaction is in a block. One that the node does not know is waited for, too: it may come from another
 * node.
 *
 * @throws GatehouseError REJECTED with the sentence that says why; NOT_FOUND or DEADLINE_EXCEEDED when the time is over
 * and it is unknown or pending.
 */
export async function waitFor(
  { chain, lifetime }: { readonly chain: Client<typeof ChainService>; readonly lifetime: Lifetime },
  hash: string,
  { signal, timeoutMs = usualTimeoutMs }: CallOptions,
): Promise<Included> {
  return await lifetime.run(signal, async (own) => {
    const endsAtMs = performance.now() + timeoutMs;
    let last: GatehouseError | undefined;
    for (let waitMs = firstWaitMs; ; waitMs = Math.min(maxWaitMs, waitMs * 1.5)) {
      const leftMs = Math.max(1, Math.floor(endsAtMs - performance.now()));
      const found = await look(chain, hash, { signal: own, timeoutMs: leftMs });
      if (!(found instanceof GatehouseError)) {
        return found;
      }
      // A look that the time ran out for tells less than the one before.
      last = last !== undefined && found.reason === "DEADLINE_EXCEEDED" && found.cause !== undefined ? last : found;
      if (performance.now() + waitMs >= endsAtMs) {
        throw last;
      }
      await sleep(waitMs, own);
    }
  });
}

/** Where it is; the error to give up with where it is nowhere yet. */
async function look(
  chain: Client<typeof ChainService>,
  hash: string,
  options: CallOptions,
): Promise<Included | GatehouseError> {
  try {
    const { status, blockNumber, reason } = await chain.getTransaction({ hash }, options);
    if (status === TransactionStatus.INCLUDED) {
      return { hash, blockNumber: blockNumber! };
    }
    if (status === TransactionStatus.REJECTED) {
      throw new GatehouseError(reason ?? "The transaction is rejected.", "REJECTED", { transactionHash: hash });
    }
    const sentence = "The transaction is still pending; look again later.";
    return new GatehouseError(sentence, "DEADLINE_EXCEEDED", { transactionHash: hash });
  } catch (thrown) {
    options.signal?.throwIfAborted();
    const error = toGatehouseError(thrown);
    if (error.reason === "NOT_FOUND" || error.reason === "DEADLINE_EXCEEDED") {
      return ofTransaction(error, hash);
    }
    // That it is in no block is what cannot be proved.
    if (error instanceof ProofError && error.flaw === "unprovable") {
      return error;
    }
    throw error;
  }
}
