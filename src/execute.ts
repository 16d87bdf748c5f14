/** Which feature makes the effects of a transaction, by its operation. */
import type { Knex } from "knex";
import type { TransactionBody } from "../gen/gatehouse/chain/v1/block_pb.js";
import { executeOperation } from "./storage/write.js";

/**
 * Makes the effects of a transaction, inside the database transaction of its block.
 *
 * @param timeMs time of the block.
 * @throws Failure when they cannot be made.
 */
export async function execute(db: Knex, { operation, sender, nonce }: TransactionBody, timeMs: number): Promise<void> {
  switch (operation.case) {
    case "storage":
      await executeOperation(db, operation.value, { sender, nonce, timeMs });
      return;
    case undefined:
      throw new Error("A transaction without an operation was not refused when it was read.");
  }
}
