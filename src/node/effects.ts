/** Which feature makes the effects of a transaction, by its operation. */
import type { BlockEffects, Effects } from "../chain/chain.js";
import { executeOperation } from "../storage/write.js";
import type { ZkChanges } from "../zk/write.js";

/** Joins the features. */
export function createEffects(zk: ZkChanges): Effects {
  return {
    async check({ body: { operation, sender }, hash }, blockNumber) {
      if (operation.case === "zk") {
        await zk.check(operation.value, { sender, transactionHash: hash, blockNumber });
      }
    },
    begin({ number, timeMs }): BlockEffects {
      const zkBlock = zk.begin(number);
      return {
        async apply(db, { body: { operation, sender, nonce }, hash }) {
          switch (operation.case) {
            case "storage":
              await executeOperation(db, operation.value, { sender, nonce, timeMs });
              return;
            case "zk":
              await zkBlock.apply(db, operation.value, { sender, transactionHash: hash });
              return;
            case undefined:
              throw new Error("A transaction without an operation was not refused when it was read.");
          }
        },
        finish: (db) => zkBlock.finish(db),
      };
    },
  };
}
