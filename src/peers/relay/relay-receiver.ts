/** Accepts transactions that other nodes relay. */
import { fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { type Transaction, TransactionBodySchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { TransactionStatus } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import type { RelayOutcomeSchema, RelayTransactionsRequest } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { RpcError, toRpcError } from "../../rpc/errors.js";
import { maxRelayed } from "./relay.js";

export interface RelayReceiverDeps {
  /**
   * Accepts a transaction from a peer at this address. The transaction follows the sender's transaction with the nonce
   * `afterNonce`. Returns the status of the transaction.
   *
   * @throws RpcError if the transaction cannot be accepted.
   */
  readonly acceptTransaction: (
    transaction: Transaction,
    address: string,
    afterNonce: bigint | undefined,
  ) => Promise<{ readonly status: "pending" | "included" } | { readonly status: "rejected"; readonly reason: string }>;
  /** Called for an internal error of this node that no transaction caused. */
  readonly onError: (error: unknown) => void;
}

const statuses = {
  pending: TransactionStatus.PENDING,
  included: TransactionStatus.INCLUDED,
  rejected: TransactionStatus.REJECTED,
} as const;

type Outcome = MessageInitShape<typeof RelayOutcomeSchema>;

const retryEarlierFirst = "An earlier transaction of the same sender must be retried first.";

/**
 * Creates the function that accepts transactions and returns one outcome for each, in their order. The function throws
 * RpcError INVALID_REQUEST if there are more than {@link maxRelayed} transactions.
 */
export function createRelayReceiver({ acceptTransaction, onError }: RelayReceiverDeps) {
  async function accept(transaction: Transaction, address: string, afterNonce: bigint | undefined): Promise<Outcome> {
    try {
      const result = await acceptTransaction(transaction, address, afterNonce);
      return { status: statuses[result.status], reason: result.status === "rejected" ? result.reason : "" };
    } catch (error) {
      const rpcError = toRpcError(error);
      if (rpcError !== error && rpcError.reason === "INTERNAL_ERROR") {
        onError(error);
      }
      // A transient error is caused by this node, so the transaction itself is not rejected.
      const status = rpcError.kind.transient ? TransactionStatus.UNSPECIFIED : TransactionStatus.REJECTED;
      return { status, reason: rpcError.message };
    }
  }

  return async ({ transactions, orders }: RelayTransactionsRequest, address: string): Promise<Outcome[]> => {
    if (transactions.length > maxRelayed) {
      throw new RpcError("INVALID_REQUEST", `At most ${maxRelayed} transactions are accepted in one request.`);
    }
    const outcomes: Outcome[] = [];
    // Senders with a transaction to retry. Their later transactions must wait, since accepting them would skip the
    // nonce of the earlier one.
    const deferredSenders = new Set<string>();
    for (const [i, transaction] of transactions.entries()) {
      const isNext = deferredSenders.size === 0 || !deferredSenders.has(senderOf(transaction));
      const outcome = isNext
        ? await accept(transaction, address, orders[i]?.afterNonce)
        : { status: TransactionStatus.UNSPECIFIED, reason: retryEarlierFirst };
      if (outcome.status === TransactionStatus.UNSPECIFIED) {
        deferredSenders.add(senderOf(transaction));
      }
      outcomes.push(outcome);
    }
    return outcomes;
  };
}

/** Returns the sender of a transaction; an empty string if its body cannot be decoded. */
function senderOf({ body }: Transaction): string {
  try {
    return fromBinary(TransactionBodySchema, body).sender;
  } catch {
    return "";
  }
}
