/** Which feature makes the effects of a transaction, by its operation. */
import type { TransactionBody } from "../../gen/gatehouse/chain/v1/block_pb.js";
import type { BlockEffects, Effects } from "../chain/effects.js";
import type { Queries } from "../db/database.js";
import { checkOperation as checkStorageOperation } from "../storage/check-operation.js";
import { createProgramChanges } from "../storage/program-change-store.js";
import type { ProgramChanges } from "../storage/programs.js";
import { executeOperation } from "../storage/write.js";
import { createNullifierStore } from "../zk/nullifier-store.js";
import { createTreeChanges } from "../zk/tree-store.js";
import type { ZkChanges, ZkState } from "../zk/write.js";

/** What transactions change, of all features. */
export interface State {
  readonly programs: ProgramChanges;
  readonly zk: ZkState;
}

/** The state in the database: inside the transaction of a block, or as it is after the newest one. */
export function stateIn(db: Queries): State {
  return {
    programs: createProgramChanges(db),
    zk: { tree: createTreeChanges(db), nullifiers: createNullifierStore(db) },
  };
}

/** Checks what a transaction says to do, as far as that takes no state. Throws Failure INVALID_REQUEST. */
export function checkOperation(operation: TransactionBody["operation"]): void {
  if (operation.case === "storage") {
    checkStorageOperation(operation.value);
  }
}

/** Joins the features. */
export function createEffects(zk: ZkChanges): Effects<State> {
  return {
    checkOperation,
    async check({ body: { operation, sender } }, block) {
      if (operation.case === "zk") {
        await zk.check(operation.value, { sender, block, askedBy: sender });
      }
    },
    begin(block, state): BlockEffects {
      const zkBlock = zk.begin(block, state.zk);
      return {
        async apply({ body: { operation, sender, nonce }, hash }) {
          switch (operation.case) {
            case "storage":
              return await executeOperation(state.programs, operation.value, { sender, nonce, timeMs: block.timeMs });
            case "zk":
              return await zkBlock.apply(operation.value, { sender, transactionHash: hash });
            case undefined:
              throw new Error("A transaction without an operation was not refused when it was read.");
          }
        },
        finish: () => zkBlock.finish(),
      };
    },
  };
}
