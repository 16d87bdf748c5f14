/** Changes by transactions to the commitment tree and the nullifiers. */
import type { ZkOperation } from "../../gen/gatehouse/zk/v1/operation_pb.js";
import { hex32 } from "../base/crypto/hash.js";
import { RpcError } from "../rpc/errors.js";
import { costs } from "./cost.js";
import { parseFieldElement } from "./field-element.js";
import { appendLeaves, type BlockPosition, maxLeaves, type MerkleRoot, type TreeChanges } from "./merkle-tree.js";
import type { NullifierChanges } from "./nullifiers.js";
import { createSpendCheck, type SpendCheckDeps, type SpendContext, type SpendState } from "./spend-check.js";
import type { ZkThreads } from "./worker-pool.js";

/** Sender and transaction of a change. */
export interface ZkContext {
  readonly sender: string;
  readonly transactionHash: string;
}

/**
 * Context for checking a change before it is in a block: the sender, the earliest block, and the requester in the queue
 * of proofs.
 */
export type ZkCheckContext = SpendContext & { readonly requester: string };

/** State that operations are checked against. */
export interface ZkReads extends SpendState {
  readonly tree: Pick<TreeChanges, "has" | "isKnownRoot" | "latest">;
}

/** State that blocks change. */
export interface ZkState {
  readonly tree: TreeChanges;
  readonly nullifiers: NullifierChanges;
}

/** Changes of one block. */
export interface ZkBlock {
  /** Prefetches the commitments and nullifiers that the operations name. */
  prefetch(operations: readonly ZkOperation[]): Promise<void>;
  /**
   * Applies a change, and returns its cost (./cost.ts). After that, only a rollback of the entire block undoes the
   * change.
   *
   * @throws RpcError if the change is rejected.
   */
  apply(operation: ZkOperation, context: ZkContext): Promise<number>;
  /**
   * Appends the block's leaves to the tree. Returns the new root and leaf count; undefined if the block adds no leaves.
   */
  finish(): Promise<Pick<MerkleRoot, "root" | "leafCount"> | undefined>;
}

export interface ZkChanges {
  /**
   * Checks a change against the latest state.
   *
   * @throws RpcError with the reason if the change would be rejected.
   */
  check(operation: ZkOperation, context: ZkCheckContext): Promise<void>;
  /** Starts a block. Its changes are stored with the block. */
  start(block: BlockPosition, state: ZkState): ZkBlock;
}

export interface ZkChangesDeps extends SpendCheckDeps {
  /** State after the latest block. */
  readonly latest: ZkReads;
  readonly workerPool: ZkThreads;
}

export function createZkChanges(deps: ZkChangesDeps): ZkChanges {
  const { latest, workerPool, verificationKey } = deps;
  const checkSpend = createSpendCheck(deps);

  return {
    async check({ operation }, context) {
      switch (operation.case) {
        case "addCommitment":
          await checkCommitment(latest, operation.value.commitment);
          checkCapacity((await latest.tree.latest()).leafCount);
          return;
        case "spendNullifier":
          await checkSpend(latest, operation.value, context);
          return;
        case undefined:
          throw emptyOperationError();
      }
    },

    start(block, state) {
      const { tree, nullifiers } = state;
      const leaves = new Map<string, bigint>();
      let latestRoot: MerkleRoot | undefined;
      return {
        async prefetch(operations) {
          // Malformed names are rejected later, before they are looked up.
          const hashesFrom = (hashOf: typeof commitmentIn): string[] =>
            operations.map(hashOf).filter((name) => name !== undefined && hex32.test(name)) as string[];
          await tree.prefetch(hashesFrom(commitmentIn));
          await nullifiers.prefetch(hashesFrom(nullifierIn));
        },
        async apply({ operation }, context) {
          switch (operation.case) {
            case "addCommitment": {
              const { commitment } = operation.value;
              const leaf = await checkCommitment(state, commitment);
              if (leaves.has(commitment)) {
                throw commitmentExistsError();
              }
              latestRoot ??= await tree.latest();
              checkCapacity(latestRoot.leafCount + leaves.size);
              leaves.set(commitment, leaf);
              return costs.leaf;
            }
            case "spendNullifier": {
              const { sender, transactionHash } = context;
              await checkSpend(state, operation.value, { sender, block, requester: undefined });
              nullifiers.insert(operation.value.nullifierHash, { blockNumber: block.number, transactionHash });
              return verificationKey === undefined ? costs.nullifier : costs.proof;
            }
            case undefined:
              throw emptyOperationError();
          }
        },
        finish: async () =>
          leaves.size === 0
            ? undefined
            : await appendLeaves(
                tree,
                { leaves: [...leaves.values()], block, foldAll: workerPool.foldAll },
                latestRoot,
              ),
      };
    },
  };
}

function commitmentIn({ operation }: ZkOperation): string | undefined {
  return operation.case === "addCommitment" ? operation.value.commitment : undefined;
}

function nullifierIn({ operation }: ZkOperation): string | undefined {
  return operation.case === "spendNullifier" ? operation.value.nullifierHash : undefined;
}

/** Checks that the tree has capacity for another leaf. Leaves are never removed, so a rejection is final. */
function checkCapacity(leafCount: number): void {
  if (leafCount >= maxLeaves) {
    throw new RpcError("INVALID_REQUEST", `The commitment tree is full: it has ${maxLeaves} leaves.`);
  }
}

async function checkCommitment({ tree }: ZkReads, commitment: string): Promise<bigint> {
  const leaf = parseFieldElement("A commitment", commitment);
  if (leaf === 0n) {
    throw new RpcError("INVALID_REQUEST", "A commitment must not be 0, which is the empty leaf.");
  }
  if (await tree.has(commitment)) {
    throw commitmentExistsError();
  }
  return leaf;
}

function commitmentExistsError(): RpcError {
  return new RpcError("ALREADY_EXISTS", "The commitment is in the tree already.");
}

function emptyOperationError(): RpcError {
  return new RpcError("INVALID_REQUEST", "The operation is empty; set one of its changes.");
}
