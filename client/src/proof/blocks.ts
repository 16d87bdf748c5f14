/** Blocks, which prove themselves: by the signature of their header, and by the hash of the transactions in it. */
import type { Block, Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { hex32 } from "../../../src/base/crypto/signing-payloads.js";
import { bytesOf, hashOf } from "./hashing.js";
import { checkHeader, type CheckedHeader, readHeader } from "./headers.js";
import type { ProofNetwork } from "./network.js";
import { ProofError } from "./proof-error.js";
import type { ProofSource } from "./source.js";

/** Block that an authority of the network produced. */
export interface CheckedBlock extends CheckedHeader {
  /** Hashes of its transactions, in order: 0x and 64 lower-case hex digits each. */
  readonly transactionHashes: readonly string[];
  readonly block: Block;
}

/**
 * Verifies a full block.
 *
 * @throws ProofError
 */
export function checkBlock(block: Block, network: ProofNetwork): CheckedBlock {
  const header = checkHeader(block.header, block.signature, network);
  const transactionHashes = block.transactions.map(hashOfTransaction);
  const joined = new Uint8Array(32 * transactionHashes.length);
  transactionHashes.forEach((hash, i) => joined.set(bytesOf(hash), 32 * i));
  if (header.fields.transactionsHash !== hashOf(joined)) {
    throw new ProofError("value", `The transactions of block ${header.number} do not match its header.`);
  }
  return { ...header, transactionHashes, block };
}

function hashOfTransaction({ body, withheldHash }: Transaction): string {
  if (withheldHash === undefined) {
    return hashOf(body);
  }
  if (!hex32.test(withheldHash)) {
    throw new ProofError("malformed", "The response has an invalid transaction hash.");
  }
  return withheldHash;
}

/** Requests and verifies a block by number, from 1. The node may return hashes in place of withheld transactions. */
export async function requestBlock(number: bigint, source: ProofSource): Promise<CheckedBlock> {
  return checkBlock(await request(number, source), await source.network());
}

/** Requests a block and verifies its header only. */
export async function requestHeader(number: bigint, source: ProofSource): Promise<CheckedHeader> {
  const { header, signature } = await request(number, source);
  return checkHeader(header, signature, await source.network());
}

async function request(number: bigint, source: ProofSource): Promise<Block> {
  const { block } = await source.ask(ChainService.method.getBlock, { number });
  if (block === undefined || readHeader(block.header).number !== number) {
    throw new ProofError("missing", `The response does not have block ${number}.`);
  }
  return block;
}
