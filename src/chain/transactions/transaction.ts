/** Signed transactions and blocks, encoded and decoded, and their verification. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type Block,
  type BlockHeader,
  BlockHeaderSchema,
  BlockSchema,
  type Transaction,
  type TransactionBody,
  TransactionBodySchema,
} from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { maxResponseBytes } from "../../base/limits/response-limits.js";
import { verifyEd25519, verifyEd25519OffThread } from "../../base/crypto/ed25519.js";
import { RpcError } from "../../rpc/errors.js";
import { compileBounds } from "./bounds.js";
import { hasUnknownField } from "./known-fields.js";
import { hex32, sha256 } from "../../base/crypto/hash.js";
import { blockPrefix, headPrefix, transactionPrefix } from "../../base/crypto/signing-payloads.js";
import { mapYielding, yieldToEventLoop } from "../../base/async/yielding.js";

/** Limit on the encoded body of a transaction, in bytes: a document of 1 MiB and 256 KiB for the other fields. */
export const maxTransactionBytes = 1024 * 1024 + 256 * 1024;
/** Limit on an encoded block, in bytes. A response that embeds the block adds up to 5 bytes for tag and length. */
export const maxBlockBytes = maxResponseBytes - 5;

/** Decoded transaction with a valid signature. */
export interface VerifiedTransaction {
  /** SHA-256 hash of the encoded body: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly body: TransactionBody;
  readonly signed: Transaction;
}

/** Decoded block with valid signatures, whose transactions match the hash in its header. */
export interface VerifiedBlock {
  /** SHA-256 hash of the encoded header: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly header: BlockHeader;
  readonly transactions: readonly VerifiedTransaction[];
  readonly signed: Block;
}

/** Content of a block without hashes and signatures. */
export interface BlockContent {
  readonly header: BlockHeader;
  readonly transactions: readonly Pick<VerifiedTransaction, "body">[];
}

/**
 * Rules that a transaction of this network must satisfy in every state. They are equal on every node and never change.
 */
export interface ChainRules {
  /** Hash of block 0. */
  readonly network: string;
  /** Checks the part of an operation that needs no state. Throws RpcError INVALID_REQUEST. */
  readonly checkOperation: (operation: TransactionBody["operation"]) => void;
  /** Cache of valid transactions, which are not verified again. */
  readonly known?: KnownTransactions | undefined;
}

/** Cache of transactions whose signature and operation are valid. */
export interface KnownTransactions {
  has(signed: Transaction, hash: string): boolean;
  add(signed: Transaction, hash: string): void;
}

const checkBody = compileBounds(TransactionBodySchema, "transaction");
const checkHeader = compileBounds(BlockHeaderSchema, "block header");

/** Creates the function that returns the payload to sign: a prefix that names its kind, and the encoded message. */
function payloadOf(prefix: string): (message: Uint8Array) => Uint8Array {
  const prefixBytes = Buffer.from(prefix, "latin1");
  return (message) => Buffer.concat([prefixBytes, message]);
}

export const transactionMessage = payloadOf(transactionPrefix);
export const blockMessage = payloadOf(blockPrefix);
export const headMessage = payloadOf(headPrefix);

/**
 * Decodes and verifies a transaction without access to the state. All nodes reach the same result.
 *
 * @throws RpcError INVALID_REQUEST if the transaction is malformed, exceeds a limit or is for another network;
 * INVALID_SIGNATURE if it is not signed by its sender.
 */
export function verifyTransaction(signed: Transaction, rules: ChainRules): VerifiedTransaction {
  const transaction = decodeTransaction(signed, rules);
  if (rules.known?.has(signed, transaction.hash) !== true) {
    if (!verifyEd25519(...signatureOf(transaction))) {
      throw notSignedBySender();
    }
    rules.checkOperation(transaction.body.operation);
    rules.known?.add(signed, transaction.hash);
  }
  return transaction;
}

/** Decodes a transaction and checks the limits on its fields, but neither its signature nor its operation. */
function decodeTransaction(signed: Transaction, { network }: ChainRules): VerifiedTransaction {
  if (signed.withheldHash !== undefined) {
    throw new RpcError("INVALID_REQUEST", "The transaction is withheld: it is a hash without its body.");
  }
  if (signed.body.length > maxTransactionBytes) {
    throw new RpcError("INVALID_REQUEST", `A transaction must not be larger than ${maxTransactionBytes} bytes.`);
  }
  if (parse("transaction", () => hasUnknownField(TransactionBodySchema, signed.body))) {
    throw new RpcError("INVALID_REQUEST", "The transaction holds a field that this node does not know.");
  }
  const body = parse("transaction", () => fromBinary(TransactionBodySchema, signed.body));
  checkBody(body);
  if (body.network !== network) {
    throw new RpcError("INVALID_REQUEST", `The transaction is for another network; this one is ${network}.`);
  }
  if (body.operation.case === undefined) {
    throw new RpcError("INVALID_REQUEST", "The transaction has no operation.");
  }
  return { hash: sha256(signed.body), body, signed };
}

/** Returns the arguments of a verification of the sender's signature. */
function signatureOf({ body, signed }: VerifiedTransaction): [key: string, bytes: Uint8Array, signature: Uint8Array] {
  return [body.sender, transactionMessage(signed.body), signed.signature];
}

function notSignedBySender(): RpcError {
  return new RpcError("INVALID_SIGNATURE", "The transaction is not signed by its sender.");
}

/**
 * Decodes a block header and verifies its signature. Does not check that the proposer is an authority.
 *
 * @throws RpcError INVALID_REQUEST, INVALID_SIGNATURE
 */
export function verifyHeader(
  signed: Pick<Block, "header" | "signature">,
  { network }: Pick<ChainRules, "network">,
): BlockHeader {
  const header = parse("block header", () => fromBinary(BlockHeaderSchema, signed.header));
  checkHeader(header);
  if (!hex32.test(header.proposer) || !verifyEd25519(header.proposer, blockMessage(signed.header), signed.signature)) {
    throw new RpcError("INVALID_SIGNATURE", "The block is not signed by its proposer.");
  }
  if (header.genesisHash !== network) {
    throw new RpcError("INVALID_REQUEST", `The block is of another network; this one is ${network}.`);
  }
  return header;
}

/** Decoded block whose transaction signatures are still being verified. */
export interface BlockInVerification {
  /** Block, to be used only once {@link signatures} resolves. */
  readonly block: VerifiedBlock;
  /** Resolves once worker threads have verified the signatures. Rejects with RpcError INVALID_SIGNATURE. */
  readonly signatures: Promise<void>;
}

/**
 * Decodes and verifies a block. Does not check that it extends the chain.
 *
 * @throws RpcError INVALID_REQUEST, INVALID_SIGNATURE
 */
export async function verifyBlock(signed: Block, rules: ChainRules): Promise<VerifiedBlock> {
  const { block, signatures } = await startBlockVerification(signed, rules);
  await signatures;
  return block;
}

/**
 * Decodes a block, verifies its header, and starts to verify the signatures of its transactions in the background.
 *
 * @throws RpcError INVALID_REQUEST; INVALID_SIGNATURE if the block is not signed by its proposer.
 */
export async function startBlockVerification(signed: Block, rules: ChainRules): Promise<BlockInVerification> {
  if (encodedBlockBytes(signed) > maxBlockBytes) {
    throw new RpcError("INVALID_REQUEST", `A block must not be larger than ${maxBlockBytes} bytes.`);
  }
  const header = verifyHeader(signed, rules);
  const transactions = await mapYielding(signed.transactions, (one) => decodeTransaction(one, rules));
  if (header.transactionsHash !== hashOfHashes(transactions.map(({ hash }) => hash))) {
    throw new RpcError("INVALID_REQUEST", "The block does not hold the transactions that its header names.");
  }
  const uncached = transactions.filter(({ signed: one, hash }) => rules.known?.has(one, hash) !== true);
  const verified = verifySenders(uncached);
  // Prevents an unhandled rejection if an operation is invalid first; `signatures` reports this error otherwise.
  verified.catch(() => undefined);
  await mapYielding(uncached, ({ body }) => rules.checkOperation(body.operation));
  const signatures = verified.then(() => uncached.forEach(({ signed: one, hash }) => rules.known?.add(one, hash)));
  signatures.catch(() => undefined);
  return { block: { hash: sha256(signed.header), header, transactions, signed }, signatures };
}

/**
 * Number of signatures verified concurrently: twice the default number of threads in the Node.js thread pool. Threads
 * thus never idle between signatures, and a database query waits behind two signatures at most.
 */
const maxConcurrentVerifications = 8;

/** Size in bytes from which a body waits for a turn of long work: its copy for the thread may take milliseconds. */
const longBodyBytes = 64 * 1024;

/** Verifies signatures on the thread pool. Stops at the first invalid one and throws RpcError INVALID_SIGNATURE. */
async function verifySenders(transactions: readonly VerifiedTransaction[]): Promise<void> {
  const queue = transactions.values();
  let areValid = true;
  const verifyQueued = async (): Promise<void> => {
    for (const transaction of queue) {
      if (transaction.signed.body.length >= longBodyBytes) {
        await yieldToEventLoop();
      }
      const isValid = await verifyEd25519OffThread(...signatureOf(transaction));
      areValid &&= isValid;
      if (!areValid) {
        throw notSignedBySender();
      }
    }
  };
  await Promise.all(Array.from({ length: maxConcurrentVerifications }, verifyQueued));
}

/** Returns the encoded size of a block in bytes without encoding it. */
export function encodedBlockBytes({ header, signature, transactions }: Block): number {
  const sizes = transactions.map(({ body, signature: ofSender }) =>
    fieldBytes(optionalBytes(body.length) + optionalBytes(ofSender.length)),
  );
  return sizes.reduce((sum, bytes) => sum + bytes, optionalBytes(header.length) + optionalBytes(signature.length));
}

/** Returns the encoded size of a length-delimited field: tag, length as a varint, and content. */
function fieldBytes(bytes: number): number {
  return 1 + Math.max(1, Math.ceil((32 - Math.clz32(bytes)) / 7)) + bytes;
}

function optionalBytes(bytes: number): number {
  return bytes === 0 ? 0 : fieldBytes(bytes);
}

/**
 * Decodes the header of a stored block and hashes its transactions. Verifies no signatures: the block was verified when
 * it was applied.
 */
export function decodeBlock(signed: Block): { readonly header: BlockHeader; readonly transactionHashes: string[] } {
  return {
    header: decodeHeader(signed.header),
    transactionHashes: signed.transactions.map(({ body }) => sha256(body)),
  };
}

/** Decodes a stored block without verifying it again. */
export function decodeBlockContent({ header, transactions }: Block): BlockContent {
  return {
    header: decodeHeader(header),
    transactions: transactions.map(({ body }) => ({ body: fromBinary(TransactionBodySchema, body) })),
  };
}

/** Decodes a stored block header without verifying it again. */
export function decodeHeader(header: Uint8Array): BlockHeader {
  return fromBinary(BlockHeaderSchema, header);
}

/** Roots of the state after a block, as stated in its header. */
export type BlockRoots = Pick<BlockHeader, "stateRoot"> & {
  /** Undefined if the block adds no commitments. */
  readonly commitmentRoot: string | undefined;
};

/** Fields of a header before it is signed. */
export type UnsignedHeader = Pick<
  BlockHeader,
  "number" | "previousHash" | "timestampMs" | "proposer" | "genesisHash" | "transactionsHash"
> &
  BlockRoots;

/** Creates and signs a block. */
export function signBlock(
  header: Omit<UnsignedHeader, "transactionsHash">,
  transactions: readonly VerifiedTransaction[],
  sign: (bytes: Uint8Array) => Uint8Array,
): VerifiedBlock {
  const complete = create(BlockHeaderSchema, {
    ...header,
    transactionsHash: hashOfHashes(transactions.map(({ hash }) => hash)),
  });
  const bytes = toBinary(BlockHeaderSchema, complete);
  const signed = create(BlockSchema, {
    header: bytes,
    signature: sign(blockMessage(bytes)),
    transactions: transactions.map((transaction) => transaction.signed),
  });
  return { hash: sha256(bytes), header: complete, transactions, signed };
}

/** Returns the hash in a block header that identifies its transactions: SHA-256 over their concatenated hashes. */
export function hashOfHashes(hashes: readonly string[]): string {
  return sha256(Buffer.from(hashes.map((hash) => hash.slice(2)).join(""), "hex"));
}

/** Throws RpcError INVALID_REQUEST if the content cannot be read. */
export function parse<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch {
    throw new RpcError("INVALID_REQUEST", `The ${what} cannot be decoded.`);
  }
}
