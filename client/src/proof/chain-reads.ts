/** Verified reads of the chain: the proof that each needs, and the response that is built from it. */
import { ChainService, TransactionStatus } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { InfoService } from "../../../gen/gatehouse/info/v1/info_pb.js";
import { toBareHash, toPublicKey } from "../../../src/base/crypto/parse-hash.js";
import { latestBlock } from "../../../src/base/latest-block.js";
import { blockZero } from "../../../src/chain/blocks/block-rejections.js";
import { GatehouseError } from "../gatehouse-error.js";
import { checkSender, checkSenders, requestBlock } from "./blocks.js";
import { hashOf } from "./hashing.js";
import { requireOneChain } from "./moment.js";
import { ProofError } from "./proof-error.js";
import { provedRead } from "./proved-read.js";
import { type ProofSource, provenError, readExisting, unprovable, wrongForm } from "./source.js";

const { method } = ChainService;

export const chainReads = [
  provedRead(InfoService.method.getGenesis, async (_, { network }) => ({ genesis: (await network()).genesis })),

  provedRead(method.getHead, async (_, { prove, network }) => {
    const { number, hash, timestampMs, signed } = (await prove({})).block;
    const { header, signature } = signed ?? {};
    return { number, hash, timestampMs, genesisHash: (await network()).genesisHash, header, signature };
  }),

  provedRead(method.getSender, async (request, { prove }) => {
    const publicKey = toPublicKey(request.address);
    if (publicKey === undefined) {
      const form = "an Ed25519 public key of 64 hex digits, with or without ed25519: and 0x before them";
      throw wrongForm("address", form, request.address);
    }
    const { address, nonce } = (await prove({ senders: [publicKey] })).senders[0]!;
    return { address, nonce };
  }),

  provedRead(method.getBlock, async ({ number }, source) => {
    const latest = number === latestBlock ? (await source.prove({})).block : undefined;
    const existing = latest?.number ?? number;
    if (existing === 0n) {
      throw provenError(blockZero);
    }
    const checked = await readExisting(existing, source, () => requestBlock(existing, source));
    requireOneChain(checked, latest?.signed);
    await checkSenders(checked.block.transactions, source.verifyEd25519);
    const { hash, fields: header, transactionHashes, block } = checked;
    return { hash, header, transactionHashes: [...transactionHashes], block };
  }),

  // A block proves that it includes a transaction. No proof exists for pending or rejected transactions.
  provedRead(method.getTransaction, async (request, source) => {
    const hash = toBareHash(request.hash);
    if (hash === undefined) {
      throw wrongForm("hash", "64 hex digits, with or without 0x before them", request.hash);
    }
    const blockNumber = await requestBlockOf(hash, source);
    if (blockNumber === undefined) {
      throw unprovable("The absence of a transaction from all blocks");
    }
    const { transactionHashes, block } = await requestBlock(blockNumber, source);
    const index = transactionHashes.indexOf(hash);
    if (index === -1) {
      throw new ProofError("missing", `The transaction is not in block ${blockNumber}, contrary to the response.`);
    }
    const body = request.withBody ? checkSender(block.transactions[index]!, source.verifyEd25519) : undefined;
    return { hash, status: TransactionStatus.INCLUDED, blockNumber, ...(body !== undefined && { body }) };
  }),

  // Not a read. The response is the hash, which the sender can compute.
  provedRead(method.submitTransaction, async ({ transaction }, { ask }) => {
    if (transaction === undefined) {
      throw provenError(["INVALID_REQUEST", "The request must hold a transaction."]);
    }
    const { hash } = await ask(method.submitTransaction, { transaction });
    if (hash !== hashOf(transaction.body)) {
      throw new ProofError("value", "The node returned another hash than that of the transaction.");
    }
    return { hash };
  }),
];

/** Returns the block that the node names; undefined if it names none. */
async function requestBlockOf(hash: string, { ask }: ProofSource): Promise<bigint | undefined> {
  try {
    const { status, blockNumber } = await ask(method.getTransaction, { hash });
    return status === TransactionStatus.INCLUDED ? blockNumber : undefined;
  } catch (error) {
    if (error instanceof GatehouseError && error.reason === "NOT_FOUND") {
      return undefined;
    }
    throw error;
  }
}
