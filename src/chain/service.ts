/** The chain service, and the consensus service of the internal port. */
import { type ChainService, type ConsensusService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { Failure } from "../rpc/errors.js";
import { normalizeHash } from "../rpc/parameters.js";
import type { Implementation } from "../rpc/service.js";
import type { Chain } from "./chain.js";
import type { ChainStore } from "./store.js";
import { describeBlock, describeTransaction } from "./transaction.js";

const statuses = {
  pending: TransactionStatus.PENDING,
  included: TransactionStatus.INCLUDED,
  rejected: TransactionStatus.REJECTED,
} as const;

/** Most pending transactions of one answer. */
const mostPending = 200;

/** Builds the chain service. */
export function createChainService(
  chain: Pick<Chain, "head" | "submit">,
  store: Pick<ChainStore, "block" | "blockByHash" | "fate" | "pending">,
): Implementation<typeof ChainService> {
  return {
    getHead() {
      const head = chain.head();
      if (head === undefined) {
        throw new Failure("STATE_NOT_READY", "The node has no genesis block yet; start it with --genesis FILE.");
      }
      return head;
    },

    async getBlock({ number }) {
      const stored = number > BigInt(Number.MAX_SAFE_INTEGER) ? undefined : await store.block(number);
      if (stored === undefined) {
        throw new Failure(
          "NOT_FOUND",
          number === 0n ? "Block 0 is the genesis: GET /genesis." : "There is no such block yet.",
        );
      }
      return { ...stored, ...describeBlock(stored.block) };
    },

    async getBlockByHash(request) {
      const stored = await store.blockByHash(normalizeHash("A block's hash", request.hash));
      if (stored === undefined) {
        throw new Failure("NOT_FOUND", "There is no block from 1 on with this hash.");
      }
      return { block: { ...stored, ...describeBlock(stored.block) } };
    },

    async listPendingTransactions({ limit = 50 }) {
      if (limit < 1 || limit > mostPending) {
        throw new Failure("INVALID_REQUEST", `limit must be a whole number from 1 to ${mostPending}.`);
      }
      return { transactions: (await store.pending(limit)).map(describeTransaction) };
    },

    async *listBlocks({ fromNumber }, { signal }) {
      const last = chain.head()?.number ?? 0n;
      for (let number = fromNumber < 1n ? 1n : fromNumber; number <= last && !signal.aborted; number++) {
        const stored = await store.block(number);
        if (stored === undefined) {
          throw new Error(`Block ${number} is missing in the database.`);
        }
        yield { block: stored.block };
      }
    },

    async submitTransaction({ transaction }) {
      if (transaction === undefined) {
        throw new Failure("INVALID_REQUEST", "The request must hold a transaction.");
      }
      return { hash: await chain.submit(transaction) };
    },

    async getTransaction(request) {
      const hash = normalizeHash("A transaction's hash", request.hash);
      const fate = await store.fate(hash);
      if (fate === undefined) {
        throw new Failure("NOT_FOUND", "The node does not know this transaction.");
      }
      return { hash, ...fate, status: statuses[fate.status] };
    },
  };
}

/** Builds the consensus service. */
export function createConsensusService(chain: Pick<Chain, "apply">): Implementation<typeof ConsensusService> {
  return {
    async applyBlock({ block }) {
      if (block === undefined) {
        throw new Failure("INVALID_REQUEST", "The request must hold a block.");
      }
      return { hash: await chain.apply(block) };
    },
  };
}
