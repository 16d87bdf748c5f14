/** Signed transactions and blocks, as they travel and as they are read. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type Block,
  type BlockHeader,
  BlockHeaderSchema,
  BlockSchema,
  type Transaction,
  type TransactionBody,
  TransactionBodySchema,
  TransactionSchema,
} from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { maxResponseBytes } from "../../base/limits/response-limits.js";
import { verifyEd25519, verifyEd25519OffThread } from "../../base/crypto/ed25519.js";
import { RpcError } from "../../rpc/errors.js";
import { compileBounds } from "./bounds.js";
import { hex32, sha256 } from "../../base/crypto/hash.js";
import { mapYielding } from "../../base/async/yielding.js";
import { blockMessage, transactionMessage } from "./signing.js";

/** Most bytes of a transaction's body: a document of 1 MiB and what comes with it. */
export const maxTransactionBytes = 1024 * 1024 + 256 * 1024;
/** Most bytes of a block, encoded: in a message of its own, with a tag and a length before it, it still fits an answer. */
export const maxBlockBytes = maxResponseBytes - 5;

/** A transaction whose signature was verified. */
export interface ReadTransaction {
  /** 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly body: TransactionBody;
  readonly signed: Transaction;
}

/** A block whose signature was verified, and whose transactions are those that it names. */
export interface VerifiedBlock {
  /** 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly header: BlockHeader;
  readonly transactions: readonly ReadTransaction[];
  readonly signed: Block;
}

/** What a block says, without hashes and signatures. */
export interface BlockContent {
  readonly header: BlockHeader;
  readonly transactions: readonly Pick<ReadTransaction, "body">[];
}

/** What makes a transaction one of this network, whatever the state: the same on every node, for ever. */
export interface ChainRules {
  /** Hash of block 0. */
  readonly network: string;
  /** Checks what a transaction says to do, as far as that takes no state. Throws Failure INVALID_REQUEST. */
  readonly checkOperation: (operation: TransactionBody["operation"]) => void;
  /** What was found right is not looked at again. */
  readonly known?: KnownTransactions | undefined;
}

/** Transactions that are signed by their senders, and whose operation can be one. */
export interface KnownTransactions {
  has(signed: Transaction, hash: string): boolean;
  add(signed: Transaction, hash: string): void;
}

const findInBody = compileBounds(TransactionBodySchema, "transaction");
const findInHeader = compileBounds(BlockHeaderSchema, "block header");

/**
 * Reads a transaction: what it finds is what every node finds, before anything touches the state.
 *
 * @throws Failure INVALID_REQUEST when it is malformed, out of bounds, or of another network; INVALID_SIGNATURE when its
 * sender did not sign it.
 */
export function readTransaction(signed: Transaction, rules: ChainRules): ReadTransaction {
  const transaction = readUnverified(signed, rules);
  if (rules.known?.has(signed, transaction.hash) !== true) {
    if (!verifyEd25519(...signatureOf(transaction))) {
      throw notSignedBySender();
    }
    rules.checkOperation(transaction.body.operation);
    rules.known?.add(signed, transaction.hash);
  }
  return transaction;
}

/** Reads a transaction without a look at its signature, and at its operation as far as that takes no more than bounds. */
function readUnverified(signed: Transaction, { network }: ChainRules): ReadTransaction {
  if (signed.withheldHash !== undefined) {
    throw new RpcError("INVALID_REQUEST", "The transaction is withheld: it is a hash without its body.");
  }
  if (signed.body.length > maxTransactionBytes) {
    throw new RpcError("INVALID_REQUEST", `A transaction must not be larger than ${maxTransactionBytes} bytes.`);
  }
  const body = parse("transaction", () => fromBinary(TransactionBodySchema, signed.body));
  refuse(findInBody(body));
  if (body.network !== network) {
    throw new RpcError("INVALID_REQUEST", `The transaction is for another network; this one is ${network}.`);
  }
  if (body.operation.case === undefined) {
    throw new RpcError("INVALID_REQUEST", "The transaction says nothing to do.");
  }
  return { hash: sha256(signed.body), body, signed };
}

function signatureOf({ body, signed }: ReadTransaction): [publicKey: string, bytes: Uint8Array, signature: Uint8Array] {
  return [body.sender, transactionMessage(signed.body), signed.signature];
}

function notSignedBySender(): RpcError {
  return new RpcError("INVALID_SIGNATURE", "The transaction is not signed by its sender.");
}

/**
 * Reads the header of a block. Whether its proposer is an authority is for the chain to say.
 *
 * @throws Failure INVALID_REQUEST, INVALID_SIGNATURE
 */
export function readHeader(
  signed: Pick<Block, "header" | "signature">,
  { network }: Pick<ChainRules, "network">,
): BlockHeader {
  const header = parse("block header", () => fromBinary(BlockHeaderSchema, signed.header));
  refuse(findInHeader(header));
  if (!hex32.test(header.proposer) || !verifyEd25519(header.proposer, blockMessage(signed.header), signed.signature)) {
    throw new RpcError("INVALID_SIGNATURE", "The block is not signed by its proposer.");
  }
  if (header.genesisHash !== network) {
    throw new RpcError("INVALID_REQUEST", `The block is of another network; this one is ${network}.`);
  }
  return header;
}

/** A block that is read as far as one thread does it. */
export interface BlockInReading {
  /** What it is once {@link signatures} hold. */
  readonly block: VerifiedBlock;
  /** The signatures of its transactions, verified in other threads. Rejects with a Failure INVALID_SIGNATURE. */
  readonly signatures: Promise<void>;
}

/**
 * Reads a block. How it fits to the chain is for the chain to say.
 *
 * @throws Failure INVALID_REQUEST, INVALID_SIGNATURE
 */
export async function verifyBlock(signed: Block, rules: ChainRules): Promise<VerifiedBlock> {
  const { block, signatures } = await beginBlock(signed, rules);
  await signatures;
  return block;
}

/**
 * Reads a block but for the signatures of its transactions, which are verified meanwhile.
 *
 * @throws Failure INVALID_REQUEST; INVALID_SIGNATURE when it is not signed by its proposer.
 */
export async function beginBlock(signed: Block, rules: ChainRules): Promise<BlockInReading> {
  if (encodedBlockBytes(signed) > maxBlockBytes) {
    throw new RpcError("INVALID_REQUEST", `A block must not be larger than ${maxBlockBytes} bytes.`);
  }
  const header = readHeader(signed, rules);
  const transactions = await mapYielding(signed.transactions, (one) => readUnverified(one, rules));
  if (header.transactionsHash !== hashOfHashes(transactions.map(({ hash }) => hash))) {
    throw new RpcError("INVALID_REQUEST", "The block does not hold the transactions that its header names.");
  }
  const unknown = transactions.filter(({ signed: one, hash }) => rules.known?.has(one, hash) !== true);
  const verified = verifySenders(unknown);
  // Whoever waits for them hears of it; an operation may be found wrong before.
  verified.catch(() => undefined);
  await mapYielding(unknown, ({ body }) => rules.checkOperation(body.operation));
  const signatures = verified.then(() => unknown.forEach(({ signed: one, hash }) => rules.known?.add(one, hash)));
  signatures.catch(() => undefined);
  return { block: { hash: sha256(signed.header), header, transactions, signed }, signatures };
}

/**
 * Signatures that are verified at a time. That is twice the threads of Node.js's pool, so that none waits until this one
 * has the next for it; a query of the database waits for two of them at most.
 */
const verifiedAtOnce = 8;

/** Verifies that transactions are signed by their senders. Throws Failure INVALID_SIGNATURE. */
async function verifySenders(transactions: readonly ReadTransaction[]): Promise<void> {
  const left = transactions.values();
  let areRight = true;
  const verifySome = async (): Promise<void> => {
    for (const transaction of left) {
      areRight &&= await verifyEd25519OffThread(...signatureOf(transaction));
      if (!areRight) {
        throw notSignedBySender();
      }
    }
  };
  await Promise.all(Array.from({ length: verifiedAtOnce }, verifySome));
}

/** How many bytes a block has once it is encoded, without encoding it. */
export function encodedBlockBytes({ header, signature, transactions }: Block): number {
  const ofTransactions = transactions.map((each) =>
    field(optional(each.body.length) + optional(each.signature.length)),
  );
  return ofTransactions.reduce((sum, bytes) => sum + bytes, optional(header.length) + optional(signature.length));
}

/** A field of so many bytes: its tag, its length as a varint, itself. */
function field(bytes: number): number {
  return 1 + Math.max(1, Math.ceil((32 - Math.clz32(bytes)) / 7)) + bytes;
}

/** The same, which is not written when it is empty. */
function optional(bytes: number): number {
  return bytes === 0 ? 0 : field(bytes);
}

/** A block of the database, in words; its signatures were verified when it was applied. */
export function describeBlock(signed: Block): { readonly header: BlockHeader; readonly transactionHashes: string[] } {
  return {
    header: describeHeader(signed.header),
    transactionHashes: signed.transactions.map(({ body }) => sha256(body)),
  };
}

/** What a block of the database says. */
export function readStoredBlock({ header, transactions }: Block): BlockContent {
  return {
    header: describeHeader(header),
    transactions: transactions.map(({ body }) => ({ body: fromBinary(TransactionBodySchema, body) })),
  };
}

/** A header of the database, in words. */
export function describeHeader(header: Uint8Array): BlockHeader {
  return fromBinary(BlockHeaderSchema, header);
}

/** A transaction as the mempool keeps it. */
export function encodeTransaction(signed: Transaction): Uint8Array {
  return toBinary(TransactionSchema, signed);
}

/** What the header of a block says of the state after it. */
export type BlockRoots = Pick<BlockHeader, "stateRoot"> & {
  /** Undefined where the block adds no commitments. */
  readonly commitmentRoot: string | undefined;
};

/** What a header says. */
export type UnsignedHeader = Pick<
  BlockHeader,
  "number" | "previousHash" | "timestampMs" | "proposer" | "genesisHash" | "transactionsHash"
> &
  BlockRoots;

/** Makes and signs a block. */
export function signBlock(
  header: Omit<UnsignedHeader, "transactionsHash">,
  transactions: readonly ReadTransaction[],
  sign: (bytes: Uint8Array) => Uint8Array,
): VerifiedBlock {
  const whole = create(BlockHeaderSchema, {
    ...header,
    transactionsHash: hashOfHashes(transactions.map(({ hash }) => hash)),
  });
  const bytes = toBinary(BlockHeaderSchema, whole);
  const signed = create(BlockSchema, {
    header: bytes,
    signature: sign(blockMessage(bytes)),
    transactions: transactions.map((transaction) => transaction.signed),
  });
  return { hash: sha256(bytes), header: whole, transactions, signed };
}

/** What a header names its transactions by: SHA-256 over their hashes. */
export function hashOfHashes(hashes: readonly string[]): string {
  return sha256(Buffer.from(hashes.map((hash) => hash.slice(2)).join(""), "hex"));
}

function refuse(found: string | undefined): void {
  if (found !== undefined) {
    throw new RpcError("INVALID_REQUEST", found);
  }
}

function parse<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch {
    throw new RpcError("INVALID_REQUEST", `The ${what} cannot be read.`);
  }
}
