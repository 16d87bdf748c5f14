/** RPC services of the chain: the public chain service, and the consensus service of the internal port. */
import { fromBinary } from "@bufbuild/protobuf";
import { type Block, type Transaction, TransactionBodySchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { type ChainService, type ConsensusService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { maxResponseBytes } from "../base/limits/response-limits.js";
import { latestBlock } from "../base/latest-block.js";
import { CorruptionError } from "../base/errors/corruption.js";
import { createSerialQueue } from "../base/async/serial-queue.js";
import { RpcError } from "../rpc/errors.js";
import { defaultPageSize } from "../rpc/parameters.js";
import { type BodyChecks, type Caller, type Implementation, withCacheLifetime } from "../rpc/service.js";
import type { Chain } from "./chain.js";
import type { BlockRedactor } from "./blocks/block-redactor.js";
import { blockZero, noBlockYet } from "./blocks/block-rejections.js";
import { noLatestBlock, checkRetained, readRetained } from "./blocks/retained-blocks.js";
import type { HeadStatements } from "./writer/head-statements.js";
import { createListReads } from "./blocks/lists.js";
import type { ChainStore } from "./blocks/store.js";
import type { BlockId, BlockSize, TransactionStatusInfo } from "./blocks/store-types.js";
import { maxTransactionBytes } from "./transactions/transaction.js";

/** Protobuf status of each internal status of a transaction. */
export const statuses = {
  pending: TransactionStatus.PENDING,
  included: TransactionStatus.INCLUDED,
  rejected: TransactionStatus.REJECTED,
} as const;

/** Size above which blocks are read one at a time, in bytes of the encoded block. */
const largeBlockBytes = 64 * 1024;

/** Upper estimate in bytes of a response's fixed part for one block: decoded header, hash and signature. */
const blockOverheadBytes = 2_048;
/**
 * Additional bytes in a response for each transaction, besides body and signature: its hash, and three length prefixes.
 */
const transactionOverheadBytes = 68 + 14;

/** Upper estimate of the bytes in a request body besides the base64 text of the transaction. */
const requestOverheadBytes = 1_024;

/**
 * Creates checks that run before a request body is received. A flood consists mostly of transactions near the size
 * limit of about 1 MiB, so an early rejection saves bandwidth and memory.
 *
 * @param precheck throws if every transaction of at least this size from this address would be rejected.
 */
export function createChainBodyChecks(
  precheck: (bytes: number, address: string) => void,
): BodyChecks<typeof ChainService> {
  return {
    submitTransaction(contentLength, { address }) {
      // Base64 encodes three bytes as four characters.
      const minBytes = Math.max(0, Math.floor((contentLength - requestOverheadBytes) * 0.75));
      // Above the limit, the size check reports a more precise error than admission does.
      if (minBytes <= maxTransactionBytes) {
        precheck(minBytes, address);
      }
    },
  };
}

/**
 * Creates the chain service.
 *
 * @param heads source of the latest signed head.
 * @param redactor withholds the transactions that a caller may not read.
 */
export function createChainService(
  chain: Pick<Chain, "head"> & {
    readonly hasGenesis: boolean;
    /** Submits a transaction from a client address and returns its hash. */
    submit(transaction: Transaction, address: string): Promise<string>;
  },
  heads: Pick<HeadStatements, "latestSignedHead">,
  store: ChainStore,
  redactor: BlockRedactor,
): Implementation<typeof ChainService> {
  const reads = createBlockReads(store, redactor);
  const lists = createListReads(() => chain.head(), store, redactor);

  /** Returns the body of a transaction, if it is still stored and the caller may read it. */
  async function readBody(hash: string, { status }: TransactionStatusInfo, { identity }: Caller) {
    // A transaction that was pending may have moved into a block since its status was read.
    const pending = status === "pending" ? await store.pending(hash) : undefined;
    const signed = pending ?? (await store.transaction(hash));
    const redacted = signed && (await redactor[pending === undefined ? "body" : "pendingBody"](signed.body, identity));
    return {
      body: redacted?.content && fromBinary(TransactionBodySchema, redacted.content),
      isPublic: redacted?.isPublic === true,
    };
  }

  return {
    getHead() {
      const head = chain.head();
      if (head === undefined) {
        throw noLatestBlock(chain.hasGenesis, "genesis block");
      }
      return { ...head, head: heads.latestSignedHead(head.hash) };
    },

    async getBlock({ number: requested }, { caller }) {
      const number = requested === latestBlock ? (chain.head()?.number ?? 0n) : requested;
      if (number > BigInt(Number.MAX_SAFE_INTEGER)) {
        throw new RpcError(...noBlockYet);
      }
      return (await reads.readBlock({ number }, caller, number === 0n ? blockZero : noBlockYet)).block;
    },

    async getBlockByHash({ hash }, { caller }) {
      const { block, isPublic } = await reads.readBlock({ hash }, caller, [
        "NOT_FOUND",
        "No block from 1 on has this hash.",
      ]);
      return withCacheLifetime({ block }, isPublic ? "immutable" : "state");
    },

    async listPendingTransactions({ limit = defaultPageSize }) {
      const pending = await store.oldestPending(limit);
      return {
        transactions: pending.map(({ hash, sender, nonce, timestampMs }) => ({ hash, sender, nonce, timestampMs })),
      };
    },

    listRecentBlocks: (request) => lists.blocks(request),

    listTransactions: (request, call) => lists.transactions(request, call),

    async *listBlocks({ fromNumber: requested }, { caller, signal }) {
      const last = chain.head()?.number ?? 0n;
      const fromNumber = requested === latestBlock ? last : requested;
      // Checked before the response starts. If a block is pruned later, the read of that block throws the same error.
      checkRetained(fromNumber < 1n ? 1n : fromNumber, chain.head()?.lowestBlock ?? 1n);
      for (let number = fromNumber < 1n ? 1n : fromNumber; number <= last && !signal.aborted; number++) {
        yield { block: await reads.readStreamed(number, caller) };
      }
    },

    async submitTransaction({ transaction }, { caller }) {
      if (transaction === undefined) {
        throw new RpcError("INVALID_REQUEST", "The request must hold a transaction.");
      }
      return { hash: await chain.submit(transaction, caller.address) };
    },

    async getTransaction({ hash, withBody }, { caller }) {
      const info = await store.transactionStatus(hash);
      if (info === undefined) {
        const lowest = chain.head()?.lowestBlock ?? 1n;
        throw new RpcError(
          "NOT_FOUND",
          lowest > 1n
            ? `The node does not know this transaction; it stores the transactions of blocks from ${lowest} on.`
            : "The node does not know this transaction.",
        );
      }
      const { body, isPublic } = withBody ? await readBody(hash, info, caller) : { body: undefined, isPublic: true };
      const lifetime = info.status !== "included" ? "no-store" : isPublic ? "immutable" : "state";
      return withCacheLifetime(
        { hash, ...info, status: statuses[info.status], ...(body !== undefined && { body }) },
        lifetime,
      );
    },

    async getSender({ address }) {
      return { address, nonce: (await store.lastNonce(address)) ?? 0n };
    },
  };
}

/**
 * Creates reads that redact blocks for the caller. Large blocks are read one at a time, which limits memory use under
 * concurrent requests.
 */
function createBlockReads(store: Pick<ChainStore, "block" | "lowestBlock" | "blockSize">, redactor: BlockRedactor) {
  const enqueue = createSerialQueue();

  return {
    /** Reads one block, after a check that it fits a response. */
    async readBlock(id: BlockId, { identity }: Caller, notFound: typeof noBlockYet) {
      const size = await store.blockSize(id);
      if (size === undefined) {
        throw new RpcError(...notFound);
      }
      const { number } = size;
      checkSize(size);
      const read = async () => {
        const stored = await readRetained(store, number);
        if ("hash" in id && stored.hash !== id.hash) {
          throw new CorruptionError(`The database returned block ${number} for the hash ${id.hash}.`);
        }
        const { hash, header, transactionHashes } = stored;
        const { content, isPublic } = await redactor.block(stored, identity);
        return { block: { hash, header, transactionHashes, block: content }, isPublic };
      };
      return await (size.bytes > largeBlockBytes ? enqueue(read) : read());
    },

    /** Reads one block of a stream, of any size. */
    readStreamed: (number: bigint, { identity }: Caller): Promise<Block> =>
      enqueue(async () => (await redactor.block(await readRetained(store, number), identity)).content),
  };
}

/** Checks that a block fits a response. Throws RpcError ANSWER_TOO_LARGE. */
function checkSize({ number, transactionCount, bytes }: BlockSize): void {
  if (blockOverheadBytes + bytes + transactionCount * transactionOverheadBytes > maxResponseBytes) {
    throw new RpcError(
      "ANSWER_TOO_LARGE",
      `Block ${number} is larger than one response can be; use gatehouse.chain.v1.ChainService/ListBlocks.`,
    );
  }
}

/** Creates the consensus service, which applies blocks of an external block producer. */
export function createConsensusService(
  chain: Pick<Chain, "apply" | "dryRun">,
  heads: Pick<HeadStatements, "accept">,
): Implementation<typeof ConsensusService> {
  return {
    async applyBlock({ block }) {
      if (block === undefined) {
        throw new RpcError("INVALID_REQUEST", "The request must hold a block.");
      }
      return { hash: await chain.apply(block) };
    },

    dryRunBlock: async ({ transactions, timestampMs }) => ({ header: await chain.dryRun(transactions, timestampMs) }),

    reportHead({ head }) {
      if (head === undefined) {
        throw new RpcError("INVALID_REQUEST", "The request must hold a signed head.");
      }
      heads.accept(head);
      return {};
    },
  };
}
