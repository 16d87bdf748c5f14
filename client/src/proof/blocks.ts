/** Blocks, which prove themselves: by the signature of their header, and by the hash of the transactions in it. */
import { create } from "@bufbuild/protobuf";
import {
  type Block,
  BlockSchema,
  type Transaction,
  type TransactionBody,
  TransactionBodySchema,
} from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { hex32, transactionPrefix } from "../../../src/base/crypto/signing-payloads.js";
import { bytesOf, hashOf, isSigned, type VerifyEd25519 } from "./hashing.js";
import { checkHeader, type CheckedHeader, decode, readHeader } from "./headers.js";
import { requireOneChain } from "./moment.js";
import type { ProofNetwork } from "./network.js";
import { ProofError } from "./proof-error.js";
import type { ProofSource } from "./source.js";

/** Block that an authority of the network produced. */
export interface CheckedBlock extends CheckedHeader {
  /** Hashes of its transactions, in order: 0x and 64 lower-case hex digits each. */
  readonly transactionHashes: readonly string[];
  /** The block, without anything that the node added to it. */
  readonly block: Block;
}

/**
 * Verifies a full block, with the signatures of the senders of its transactions.
 *
 * @throws ProofError
 */
export function checkBlock(block: Block, network: ProofNetwork): CheckedBlock {
  const checked = checkContent(block, network);
  checked.block.transactions.forEach((transaction) => checkSender(transaction));
  return checked;
}

/** Verifies a block, except the signatures of senders. */
function checkContent({ header, signature, transactions }: Block, network: ProofNetwork): CheckedBlock {
  const checked = checkHeader(header, signature, network);
  const transactionHashes = transactions.map(hashOfTransaction);
  const joined = new Uint8Array(32 * transactionHashes.length);
  transactionHashes.forEach((hash, i) => joined.set(bytesOf(hash), 32 * i));
  if (checked.fields.transactionsHash !== hashOf(joined)) {
    throw new ProofError("value", `The transactions of block ${checked.number} do not match its header.`);
  }
  const block = create(BlockSchema, {
    header,
    signature,
    transactions: transactions.map(({ body, signature: sent, withheldHash }) =>
      withheldHash === undefined ? { body, signature: sent } : { withheldHash },
    ),
  });
  return { ...checked, transactionHashes, block };
}

function hashOfTransaction({ body, signature, withheldHash }: Transaction): string {
  if (withheldHash === undefined) {
    return hashOf(body);
  }
  if (!hex32.test(withheldHash)) {
    throw new ProofError("malformed", "The response has an invalid transaction hash.");
  }
  // The hash of the block would cover the hash alone, and not the content next to it.
  if (body.length > 0 || signature.length > 0) {
    throw new ProofError("malformed", `The response has content of ${withheldHash}, a transaction that it withholds.`);
  }
  return withheldHash;
}

/**
 * Verifies the signature of a transaction, which no hash of a block covers.
 *
 * @returns the decoded body; undefined for a withheld transaction.
 */
export function checkSender(
  { body, signature, withheldHash }: Transaction,
  verifyEd25519?: VerifyEd25519,
): TransactionBody | undefined {
  if (withheldHash !== undefined) {
    return undefined;
  }
  const fields = decode(TransactionBodySchema, body, "The transaction");
  if (!isSigned(fields.sender, transactionPrefix, body, signature, verifyEd25519)) {
    throw new ProofError("signature", `The sender of the transaction ${hashOf(body)} has not signed it.`);
  }
  return fields;
}

/** Signatures that are verified before other work of the thread runs. Each takes 1 to 2 ms in JavaScript. */
const signaturesPerTurn = 10;

/** Verifies the signatures of all transactions, without blocking the thread for long. */
export async function checkSenders(
  transactions: readonly Transaction[],
  verifyEd25519: VerifyEd25519 | undefined,
): Promise<void> {
  for (const [i, transaction] of transactions.entries()) {
    if (i % signaturesPerTurn === signaturesPerTurn - 1) {
      await new Promise((resolve) => setTimeout(resolve));
    }
    checkSender(transaction, verifyEd25519);
  }
}

/**
 * Requests a block by number, from 1, and verifies it except the signatures of senders. The node may return hashes in
 * place of withheld transactions.
 */
export async function requestBlock(number: bigint, source: ProofSource): Promise<CheckedBlock> {
  const block = checkContent(await request(number, source), await source.network());
  requireOneChain(block, source.seen);
  return block;
}

/** Requests a block and verifies its header only. */
export async function requestHeader(number: bigint, source: ProofSource): Promise<CheckedHeader> {
  const { header, signature } = await request(number, source);
  const checked = checkHeader(header, signature, await source.network());
  requireOneChain(checked, source.seen);
  return checked;
}

async function request(number: bigint, source: ProofSource): Promise<Block> {
  const { block } = await source.ask(ChainService.method.getBlock, { number });
  if (block === undefined || readHeader(block.header).number !== number) {
    throw new ProofError("missing", `The response does not have block ${number}.`);
  }
  return block;
}
