/** Worker thread for checks: runs all checks of a large transaction that need no state. */
import { create } from "@bufbuild/protobuf";
import { TransactionSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { lowerThreadPriority } from "../../base/async/lower-thread-priority.js";
import { verifyTransaction } from "../../chain/transactions/transaction.js";
import { RpcError, type Reason } from "../../rpc/errors.js";
import { checkOperation } from "./transaction-executor.js";

lowerThreadPriority();

/** Transaction to check. */
export interface CheckTask {
  readonly body: Uint8Array;
  readonly signature: Uint8Array;
  readonly network: string;
}

/** Error found in a transaction, as plain data: errors lose their class between threads. */
export interface Finding {
  readonly reason: Reason;
  readonly message: string;
}

/** Checks a transaction. Returns undefined if no error was found. */
export function check({ body, signature, network }: CheckTask): Finding | undefined {
  try {
    verifyTransaction(create(TransactionSchema, { body, signature }), { network, checkOperation });
    return undefined;
  } catch (error) {
    if (error instanceof RpcError) {
      return { reason: error.reason, message: error.message };
    }
    throw error;
  }
}
