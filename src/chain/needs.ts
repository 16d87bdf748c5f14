/** How reads of blocks are refused. */
import { Failure } from "../rpc/errors.js";

export const noBlockYet = "There is no such block yet.";
export const blockZero = "Block 0 is the genesis: GET /genesis.";

/** Throws Failure PRUNED for a block below the lowest one whose transactions are kept. */
export function checkKept(number: bigint, lowest: bigint): void {
  if (number < lowest) {
    throw new Failure(
      "PRUNED",
      `The transactions of block ${number} are not kept here; the oldest block that this node keeps whole is ${lowest}.`,
    );
  }
}
