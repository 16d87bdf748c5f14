/** Takes the transactions that other nodes relay. */
import { fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { type Transaction, TransactionBodySchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { TransactionStatus } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import type { RelayOutcomeSchema, RelayTransactionsRequest } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { RpcError, toRpcError } from "../../rpc/errors.js";
import { maxRelayed } from "./relay.js";

/** What became of a transaction that was relayed. */
export type RelayStatus =
  | { readonly status: "pending" | "included" }
  | { readonly status: "rejected"; readonly reason: string };

export interface RelayReceiverDeps {
  /**
   * Takes a transaction of a peer at this address, which comes after that of its sender with this nonce. Throws a Failure
   * when it cannot be taken.
   */
  readonly takeTransaction: (
    transaction: Transaction,
    address: string,
    afterNonce: bigint | undefined,
  ) => Promise<RelayStatus>;
  /** Hears of an error that is this node's own, and none of a transaction's. */
  readonly onError: (error: unknown) => void;
}

const statuses = {
  pending: TransactionStatus.PENDING,
  included: TransactionStatus.INCLUDED,
  rejected: TransactionStatus.REJECTED,
} as const;

type Outcome = MessageInitShape<typeof RelayOutcomeSchema>;
type Relayed = Pick<RelayTransactionsRequest, "transactions" | "orders">;

/**
 * Builds the function that takes transactions and gives one outcome for each, in their order.
 *
 * It throws Failure INVALID_REQUEST when there are too many.
 */
export function createRelayReceiver({ takeTransaction, onError }: RelayReceiverDeps) {
  async function take(transaction: Transaction, address: string, afterNonce: bigint | undefined): Promise<Outcome> {
    try {
      const fate = await takeTransaction(transaction, address, afterNonce);
      return { status: statuses[fate.status], reason: fate.status === "rejected" ? fate.reason : "" };
    } catch (error) {
      const failure = toRpcError(error);
      if (failure !== error && failure.reason === "INTERNAL_ERROR") {
        onError(error);
      }
      // A transient one is this node's own trouble, whatever the transaction is like.
      const status = failure.kind.transient ? TransactionStatus.UNSPECIFIED : TransactionStatus.REJECTED;
      return { status, reason: failure.message };
    }
  }

  return async ({ transactions, orders }: Relayed, address: string): Promise<Outcome[]> => {
    if (transactions.length > maxRelayed) {
      throw new RpcError("INVALID_REQUEST", `At most ${maxRelayed} transactions are taken at once.`);
    }
    const outcomes: Outcome[] = [];
    // What a sender sent after one that is to be tried again waits for that one: else its nonce would be used up.
    const waiting = new Set<string>();
    for (const [i, transaction] of transactions.entries()) {
      const isNext = waiting.size === 0 || !waiting.has(senderOf(transaction));
      const outcome = isNext
        ? await take(transaction, address, orders[i]?.afterNonce)
        : { status: TransactionStatus.UNSPECIFIED, reason: later };
      if (outcome.status === TransactionStatus.UNSPECIFIED) {
        waiting.add(senderOf(transaction));
      }
      outcomes.push(outcome);
    }
    return outcomes;
  };
}

const later = "An earlier transaction of its sender has to be tried again first.";

/** The empty text for one that cannot be read, which nobody waits for. */
function senderOf({ body }: Transaction): string {
  try {
    return fromBinary(TransactionBodySchema, body).sender;
  } catch {
    return "";
  }
}
