/** Verifies a block as an anonymous client, for whom some transactions may be replaced by their hashes. */
import type { Block } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { type ChainRules, verifyHeader, verifyTransaction } from "../../../src/chain/transactions/transaction.js";
import type { VerifiedBlock } from "../model/history.js";

/** Decodes and verifies a block. Throws an Error if a signature or hash is invalid. */
export function verifyBlock(block: Block, rules: ChainRules): VerifiedBlock {
  const header = verifyHeader(block, rules);
  const transactions = block.transactions.map(
    (transaction) => transaction.withheldHash ?? verifyTransaction(transaction, rules).hash,
  );
  const hashes = Buffer.from(transactions.map((hash) => hash.slice(2)).join(""), "hex");
  if (sha256(hashes) !== header.transactionsHash) {
    throw new Error("It does not hold the transactions that its header names.");
  }
  return {
    ...{ number: Number(header.number), hash: sha256(block.header), transactions },
    previousHash: header.previousHash,
  };
}
