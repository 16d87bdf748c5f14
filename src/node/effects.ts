/** Which feature makes the effects of a transaction, by its operation. */
import type { TransactionBody } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { fromHex32, toHex32 } from "../base/hash.js";
import type { BlockEffects, Effects } from "../chain/effects.js";
import type { ReadTransaction } from "../chain/transaction.js";
import type { Queries } from "../db/database.js";
import type { StateTreeChanges } from "../state/state-tree.js";
import { createStateTreeChanges } from "../state/state-tree-store.js";
import { checkOperation as checkStorageOperation } from "../storage/check-operation.js";
import { createProgramChanges } from "../storage/program-change-store.js";
import type { ProgramChanges } from "../storage/programs.js";
import { executeOperation } from "../storage/write.js";
import type { Leaf } from "../tree/path.js";
import { commitmentsLeaf, nullifierLeaf, senderLeaf } from "../tree/state-leaves.js";
import { createNullifierStore } from "../zk/nullifier-store.js";
import { createTreeChanges } from "../zk/tree-store.js";
import type { ZkChanges, ZkState } from "../zk/write.js";

/** What transactions change, of all features. */
export interface State {
  readonly programs: ProgramChanges;
  readonly zk: ZkState;
  readonly tree: StateTreeChanges;
}

/** The state in the database: inside the transaction of a block, or as it is after the newest one. */
export function stateIn(db: Queries): State {
  return {
    programs: createProgramChanges(db),
    zk: { tree: createTreeChanges(db), nullifiers: createNullifierStore(db) },
    tree: createStateTreeChanges(db),
  };
}

/** Leaves that transactions change beside those of programs and of the commitment tree. */
function leavesOf(transactions: readonly ReadTransaction[], blockNumber: bigint): Leaf[] {
  // The last transaction of each sender has its largest nonce.
  const nonces = new Map(transactions.map(({ body }) => [body.sender, body.nonce]));
  const senders = [...nonces].map(([sender, nonce]) => senderLeaf({ publicKey: fromHex32(sender), nonce }));
  const nullifiers = transactions.flatMap(({ hash, body: { operation } }) =>
    operation.case === "zk" && operation.value.operation.case === "spendNullifier"
      ? nullifierLeaf({
          nullifier: fromHex32(operation.value.operation.value.nullifierHash),
          blockNumber,
          transactionHash: fromHex32(hash),
        })
      : [],
  );
  return [...senders, ...nullifiers];
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
        async apply({ body: { operation, sender, nonce }, hash, signed: { signature } }) {
          switch (operation.case) {
            case "storage": {
              const context = { sender, nonce, timeMs: block.timeMs, signature };
              try {
                return await executeOperation(state.programs, operation.value, context);
              } catch (error) {
                state.programs.takenBack();
                throw error;
              }
            }
            case "zk":
              return await zkBlock.apply(operation.value, { sender, transactionHash: hash });
            case undefined:
              throw new Error("A transaction without an operation was not refused when it was read.");
          }
        },
        async finish(transactions) {
          const commitmentRoot = await zkBlock.finish();
          const leaves = [...(await state.programs.leaves()), ...leavesOf(transactions, block.number)];
          if (commitmentRoot !== undefined) {
            const { root, leafCount } = await state.zk.tree.newest();
            leaves.push(commitmentsLeaf({ root: fromHex32(root), leafCount }));
          }
          return { commitmentRoot, stateRoot: toHex32(await state.tree.change(block.number, leaves)) };
        },
      };
    },
  };
}
