/** What transactions change in the commitment tree and among the nullifiers. */
import type { ZkOperation } from "../../gen/gatehouse/zk/v1/operation_pb.js";
import { hex32 } from "../base/crypto/hash.js";
import { RpcError } from "../rpc/errors.js";
import { costs } from "./cost.js";
import { readElement } from "./field-element.js";
import { appendLeaves, type BlockMoment, maxLeaves, type MerkleRoot, type TreeChanges } from "./merkle-tree.js";
import type { NullifierChanges } from "./nullifiers.js";
import { createSpendCheck, type SpendCheckDeps, type SpendContext, type SpendState } from "./spend-check.js";
import type { ZkThreads } from "./worker-pool.js";

/** Who changes something, by which transaction. */
export interface ZkContext {
  readonly sender: string;
  readonly transactionHash: string;
}

/** Who wants to change something, in which block at the earliest, and whose turn it is. */
export type ZkCheckContext = SpendContext & { readonly askedBy: string };

/** What operations are checked against. */
export interface ZkReads extends SpendState {
  readonly tree: Pick<TreeChanges, "has" | "isKnownRoot" | "newest">;
}

/** What blocks change. */
export interface ZkState {
  readonly tree: TreeChanges;
  readonly nullifiers: NullifierChanges;
}

/** The changes of one block. */
export interface ZkBlock {
  /** Reads ahead what operations that come will look at. */
  expect(operations: readonly ZkOperation[]): Promise<void>;
  /**
   * Makes a change, and gives what it costs (./cost.ts). Once it did, the change is the block's: it can be taken back
   * with the whole block only. Throws a Failure when it cannot be made.
   */
  apply(operation: ZkOperation, context: ZkContext): Promise<number>;
  /** Adds the block's leaves to the tree, and gives the new root and how many there are then, if there are any. */
  finish(): Promise<Pick<MerkleRoot, "root" | "leafCount"> | undefined>;
}

export interface ZkChanges {
  /** Throws the Failure that the change would be rejected with in this block, as far as that is known now. */
  check(operation: ZkOperation, context: ZkCheckContext): Promise<void>;
  /** Begins a block, whose changes are stored with it. */
  begin(block: BlockMoment, state: ZkState): ZkBlock;
}

/** What the changes need. */
export interface ZkChangesDeps extends SpendCheckDeps {
  /** As it is after the newest block. */
  readonly newest: ZkReads;
  readonly workerPool: ZkThreads;
}

/** Builds the changes. */
export function createZkChanges(deps: ZkChangesDeps): ZkChanges {
  const { newest, workerPool, verificationKey } = deps;
  const checkSpend = createSpendCheck(deps);

  return {
    async check({ operation }, context) {
      switch (operation.case) {
        case "addCommitment":
          await checkCommitment(newest, operation.value.commitment);
          checkRoom((await newest.tree.newest()).leafCount);
          return;
        case "spendNullifier":
          await checkSpend(newest, operation.value, context);
          return;
        case undefined:
          throw nothingToDo();
      }
    },

    begin(block, state) {
      const { tree, nullifiers } = state;
      const leaves = new Map<string, bigint>();
      let newest: MerkleRoot | undefined;
      return {
        async expect(operations) {
          // What is no element is refused before anybody looks for it.
          const named = (which: typeof namedCommitment): string[] =>
            operations.map(which).filter((name) => name !== undefined && hex32.test(name)) as string[];
          await tree.expect(named(namedCommitment));
          await nullifiers.expect(named(namedNullifier));
        },
        async apply({ operation }, context) {
          switch (operation.case) {
            case "addCommitment": {
              const { commitment } = operation.value;
              const leaf = await checkCommitment(state, commitment);
              if (leaves.has(commitment)) {
                throw alreadyThere();
              }
              newest ??= await tree.newest();
              checkRoom(newest.leafCount + leaves.size);
              leaves.set(commitment, leaf);
              return costs.leaf;
            }
            case "spendNullifier": {
              const { sender, transactionHash } = context;
              await checkSpend(state, operation.value, { sender, block, askedBy: undefined });
              nullifiers.insert(operation.value.nullifierHash, { blockNumber: block.number, transactionHash });
              return verificationKey === undefined ? costs.nullifier : costs.proof;
            }
            case undefined:
              throw nothingToDo();
          }
        },
        finish: async () =>
          leaves.size === 0
            ? undefined
            : await appendLeaves(tree, { leaves: [...leaves.values()], block, foldAll: workerPool.foldAll }, newest),
      };
    },
  };
}

function namedCommitment({ operation }: ZkOperation): string | undefined {
  return operation.case === "addCommitment" ? operation.value.commitment : undefined;
}

function namedNullifier({ operation }: ZkOperation): string | undefined {
  return operation.case === "spendNullifier" ? operation.value.nullifierHash : undefined;
}

/** Final, since leaves stay for ever. */
function checkRoom(leafCount: number): void {
  if (leafCount >= maxLeaves) {
    throw new RpcError("INVALID_REQUEST", `The commitment tree is full: it has ${maxLeaves} leaves.`);
  }
}

async function checkCommitment({ tree }: ZkReads, commitment: string): Promise<bigint> {
  const leaf = readElement("A commitment", commitment);
  if (leaf === 0n) {
    throw new RpcError("INVALID_REQUEST", "A commitment is not 0: that is the empty leaf.");
  }
  if (await tree.has(commitment)) {
    throw alreadyThere();
  }
  return leaf;
}

function alreadyThere(): RpcError {
  return new RpcError("ALREADY_EXISTS", "The commitment is in the tree already.");
}

function nothingToDo(): RpcError {
  return new RpcError("INVALID_REQUEST", "The operation says nothing to do.");
}
