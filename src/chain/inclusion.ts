/** Which transactions fit into a block, and in which order. */
import { Failure } from "../rpc/errors.js";
import type { BlockEffects } from "./effects.js";
import type { ChainChanges } from "./store.js";
import type { ReadTransaction } from "./transaction.js";

/** What transactions have to fit to: those before them, in the chain and in their own block. */
export interface Known {
  /** Hashes of those that are in a block. */
  readonly included: Set<string>;
  /** By sender, the largest nonce. */
  readonly nonces: Map<string, bigint>;
}

/** Learns it before the block begins. */
export async function learn(changes: ChainChanges, transactions: readonly ReadTransaction[]): Promise<Known> {
  return {
    included: await changes.included(transactions.map(({ hash }) => hash)),
    nonces: await changes.lastNonces([...new Set(transactions.map(({ body }) => body.sender))]),
  };
}

/** Makes the effects of the next transaction of a block. Throws a Failure when it does not fit; then nothing changed. */
export async function include(
  block: BlockEffects,
  { included, nonces }: Known,
  transaction: ReadTransaction,
): Promise<void> {
  const { hash, body } = transaction;
  if (included.has(hash)) {
    throw new Failure("INVALID_REQUEST", "The transaction is in a block already.");
  }
  checkNonce(body.nonce, nonces.get(body.sender));
  await block.apply(transaction);
  included.add(hash);
  nonces.set(body.sender, body.nonce);
}

/**
 * Checks that a nonce is above the last one of its sender.
 *
 * @throws Failure INVALID_REQUEST
 */
export function checkNonce(nonce: bigint, lastNonce: bigint | undefined): void {
  if (lastNonce !== undefined && nonce <= lastNonce) {
    throw new Failure("INVALID_REQUEST", `The nonce ${nonce} is used: the sender's next one is above ${lastNonce}.`);
  }
}

/** The order in which they came, but those of one sender by their nonces. */
export function inNonceOrder(transactions: readonly ReadTransaction[]): ReadTransaction[] {
  const bySender = new Map<string, ReadTransaction[]>();
  for (const transaction of transactions.toSorted((a, b) => (a.body.nonce < b.body.nonce ? -1 : 1))) {
    const { sender } = transaction.body;
    bySender.set(sender, [...(bySender.get(sender) ?? []), transaction]);
  }
  return transactions.map(({ body }) => bySender.get(body.sender)!.shift()!);
}
