/** Executes transactions: the operation of a transaction decides which feature executes it. */
import type { TransactionBody } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { settleAll } from "../../base/async/settle-all.js";
import { fromHex32, toHex32 } from "../../base/crypto/hash.js";
import type { BlockExecutor, Executor } from "../../chain/transactions/executor.js";
import type { VerifiedTransaction } from "../../chain/transactions/transaction.js";
import type { Queries } from "../../db/queries/database.js";
import { createWriteBuffer, type WriteBuffer } from "../../db/rows/write-buffer.js";
import type { StateTreeChanges } from "../../state/state-tree-store.js";
import { createStateTreeChanges } from "../../state/state-tree-store.js";
import { checkOperation as checkStorageOperation } from "../../storage/changes/check-operation.js";
import { createFieldTreeBuilder } from "../../storage/changes/field-tree-builder.js";
import { createProgramChanges, type ProgramChanges } from "../../storage/changes/program-change-store.js";
import type { BuildDocument } from "../../storage/programs/programs.js";
import { executeOperation } from "../../storage/changes/write.js";
import type { Leaf } from "../../tree/path.js";
import { commitmentsLeaf, nullifierLeaf, senderLeaf } from "../../tree/state-leaves.js";
import { createNullifierChanges, createNullifierStore } from "../../zk/nullifier-store.js";
import { createTreeChanges } from "../../zk/tree-store.js";
import type { ZkChanges, ZkReads, ZkState } from "../../zk/write.js";

/** State that transactions change, across all features. */
export interface State {
  /** Write buffer for the rows that transactions change. The trees store their own rows. */
  readonly rows: Pick<WriteBuffer, "savepoint" | "store">;
  readonly programs: ProgramChanges;
  readonly zk: ZkState;
  readonly tree: StateTreeChanges;
}

/** Creates reads of the state after the latest block. Checks of transactions that are not in a block yet use them. */
export function latestIn(read: Queries): ZkReads {
  return { tree: createTreeChanges(read), nullifiers: createNullifierStore(read) };
}

/** Creates the state inside the database transaction of a block. Rows that were read stay cached until its end. */
export function stateIn(db: Queries): State {
  const rows = createWriteBuffer(db);
  return {
    rows,
    programs: createProgramChanges(rows),
    zk: { tree: createTreeChanges(db), nullifiers: createNullifierChanges(rows) },
    tree: createStateTreeChanges(db),
  };
}

/** Returns the leaves that transactions change besides those of programs and of the commitment tree. */
function leavesOf(transactions: readonly VerifiedTransaction[], blockNumber: bigint): Leaf[] {
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

/**
 * Checks an operation as far as that requires no state.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function checkOperation(operation: TransactionBody["operation"]): void {
  if (operation.case === "storage") {
    checkStorageOperation(operation.value);
  }
}

/**
 * Creates the executor of all features.
 *
 * @param buildOffThread builds the field trees of large documents on another thread. Default: on the calling thread.
 */
export function createTransactionExecutor(zk: ZkChanges, buildOffThread?: BuildDocument): Executor<State> {
  return {
    checkOperation,
    async check({ body: { operation, sender } }, block) {
      if (operation.case === "zk") {
        await zk.check(operation.value, { sender, block, requester: sender });
      }
    },
    start(block, state): BlockExecutor {
      const zkBlock = zk.start(block, state.zk);
      const fieldTreeBuilder = createFieldTreeBuilder(buildOffThread);
      const applyOne = async ({ body, hash, signed }: VerifiedTransaction): Promise<number> => {
        const { operation, sender, nonce } = body;
        switch (operation.case) {
          case "storage": {
            const context = { sender, nonce, timeMs: block.timeMs, signature: signed.signature };
            return await executeOperation(state.programs, operation.value, context);
          }
          case "zk":
            return await zkBlock.apply(operation.value, { sender, transactionHash: hash });
          case undefined:
            throw new Error("A transaction without an operation was not rejected when it was decoded.");
        }
      };
      return {
        async prefetch(transactions) {
          const operations = transactions.map(({ body }) => ({ by: body, operation: body.operation }));
          const storageOperations = operations.flatMap(({ by, operation }) =>
            operation.case === "storage" ? { by, operation: operation.value } : [],
          );
          fieldTreeBuilder.prepare(storageOperations);
          await state.programs.prefetch(storageOperations);
          await zkBlock.prefetch(
            operations.flatMap(({ operation }) => (operation.case === "zk" ? operation.value : [])),
          );
        },
        apply: (transaction) => state.rows.savepoint(() => applyOne(transaction)),
        async finish(transactions) {
          // Hashes are computed here while the database stores rows.
          const stored = state.rows.store();
          const programLeaves = state.programs.leaves({ stored, build: fieldTreeBuilder.build });
          const [, changedLeaves, commitments] = await settleAll([stored, programLeaves, zkBlock.finish()]);
          const leaves = [...changedLeaves, ...leavesOf(transactions, block.number)];
          if (commitments !== undefined) {
            const { root, leafCount } = commitments;
            leaves.push(commitmentsLeaf({ root: fromHex32(root), leafCount }));
          }
          const stateRoot = toHex32(await state.tree.change(block.number, leaves));
          return { commitmentRoot: commitments?.root, stateRoot };
        },
      };
    },
  };
}
