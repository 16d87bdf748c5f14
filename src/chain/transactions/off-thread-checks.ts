/**
 * Verifies submitted transactions without blocking the event loop, and caches verified ones. Blocks are verified on the
 * main thread, because a flood of large transactions may occupy the worker threads.
 */
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { sha256 } from "../../base/crypto/hash.js";
import { createLruCache } from "../../base/caches/lru-cache.js";
import {
  type ChainRules,
  type KnownTransactions,
  maxTransactionBytes,
  verifyTransaction,
  type VerifiedTransaction,
} from "./transaction.js";

/** Chain rules, and the function that verifies large transactions off-thread. */
export interface VerificationRules extends ChainRules {
  /** Verifies a large transaction on another thread; throws the same errors as {@link verifyTransaction}. */
  readonly checkOffThread?: CheckOffThread | undefined;
}

/** Verifies a transaction on another thread. Rejects with an RpcError if it is invalid. */
export type CheckOffThread = (signed: Transaction, network: string) => Promise<void>;

/** Number of cached transactions; above the mempool limit of 10,000. */
const maxKnown = 20_000;
/** Size above which a body is verified off-thread. Parsing 1 MiB of JSON takes up to 0.1 s. */
const offThreadBytes = 64 * 1024;
const signatureBytes = 64;

/**
 * Creates an LRU cache of verified transactions. The key includes the signature, because a hash covers only the body.
 */
export function createKnownTransactions(): KnownTransactions {
  const known = createLruCache<true>(maxKnown);
  const keyOf = ({ signature }: Transaction, hash: string): string => hash + Buffer.from(signature).toString("latin1");
  return {
    has: (signed, hash) => signed.signature.length === signatureBytes && known.has(keyOf(signed, hash)),
    add: (signed, hash) => known.set(keyOf(signed, hash), true),
  };
}

/**
 * Decodes and verifies a submitted transaction.
 *
 * @throws RpcError as {@link verifyTransaction}; OVERLOADED if too many transactions are being verified.
 */
export async function verifyOffThread(signed: Transaction, rules: VerificationRules): Promise<VerifiedTransaction> {
  const { network, known, checkOffThread } = rules;
  const { body } = signed;
  if (checkOffThread !== undefined && body.length > offThreadBytes && body.length <= maxTransactionBytes) {
    const hash = sha256(body);
    if (known?.has(signed, hash) !== true) {
      await checkOffThread(signed, network);
      known?.add(signed, hash);
    }
  }
  return verifyTransaction(signed, rules);
}
