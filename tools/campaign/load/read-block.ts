/** Reads a block as a stranger would, to whom some transactions may be withheld, and takes nothing on trust. */
import type { Block } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { type ChainRules, readHeader, readTransaction } from "../../../src/chain/transactions/transaction.js";
import type { SeenBlock } from "../model/history.js";

/** @throws Error where signatures or hashes are not what they must be */
export function readSeenBlock(block: Block, rules: ChainRules): SeenBlock {
  const header = readHeader(block, rules);
  const transactions = block.transactions.map((one) => one.withheldHash ?? readTransaction(one, rules).hash);
  const hashes = Buffer.from(transactions.map((hash) => hash.slice(2)).join(""), "hex");
  if (sha256(hashes) !== header.transactionsHash) {
    throw new Error("It does not hold the transactions that its header names.");
  }
  return {
    ...{ number: Number(header.number), hash: sha256(block.header), transactions },
    previousHash: header.previousHash,
  };
}
