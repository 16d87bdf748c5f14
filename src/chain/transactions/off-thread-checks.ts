/**
 * Reads transactions that strangers hand in, without keeping everybody else waiting, and remembers what was found right.
 * Blocks are read where they are: a flood of large transactions must not keep them out of the threads.
 */
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { sha256 } from "../../base/crypto/hash.js";
import { createLruCache } from "../../base/caches/lru-cache.js";
import {
  type ChainRules,
  type KnownTransactions,
  maxTransactionBytes,
  readTransaction,
  type ReadTransaction,
} from "./transaction.js";

/** The rules, and how a node holds transactions to them. */
export interface Reading extends ChainRules {
  /** Where a large transaction is looked at in another thread; throws what {@link readTransaction} would. */
  readonly checkAside?: CheckOffThread | undefined;
}

export type CheckOffThread = (signed: Transaction, network: string) => Promise<void>;

/** More than the mempool holds. */
const maxKnown = 20_000;
/** A larger body is looked at aside: JSON of 1 MiB takes up to a tenth of a second. */
const asideBytes = 64 * 1024;
const signatureBytes = 64;

/** Remembers the newest. */
export function createKnownTransactions(): KnownTransactions {
  const known = createLruCache<true>(maxKnown);
  const keyOf = ({ signature }: Transaction, hash: string): string => hash + Buffer.from(signature).toString("latin1");
  return {
    has: (signed, hash) => signed.signature.length === signatureBytes && known.has(keyOf(signed, hash)),
    add: (signed, hash) => known.set(keyOf(signed, hash), true),
  };
}

/**
 * Reads a transaction that was handed in.
 *
 * @throws Failure as {@link readTransaction}; OVERLOADED where too many are looked at.
 */
export async function verifyOffThread(signed: Transaction, reading: Reading): Promise<ReadTransaction> {
  const { network, known, checkAside } = reading;
  const { body } = signed;
  if (checkAside !== undefined && body.length > asideBytes && body.length <= maxTransactionBytes) {
    const hash = sha256(body);
    if (known?.has(signed, hash) !== true) {
      await checkAside(signed, network);
      known?.add(signed, hash);
    }
  }
  return readTransaction(signed, reading);
}
