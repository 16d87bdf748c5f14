/** How long a transaction waits for a block. */
import type { TransactionBody } from "../../gen/gatehouse/chain/v1/block_pb.js";

const waitsMs = 600_000;

/** When a transaction that comes now gets into no block any more, milliseconds since the epoch. */
export function expiryOf(_body: TransactionBody, receivedMs: number): number {
  return receivedMs + waitsMs;
}
