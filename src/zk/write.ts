/** Changes by transactions to the commitment tree and the nullifiers. */
import type { SpendNullifier, ZkOperation } from "../../gen/gatehouse/zk/v1/operation_pb.js";
import { hex32 } from "../base/crypto/hash.js";
import { RpcError } from "../rpc/errors.js";
import type { VerificationKey } from "./groth16.js";
import { type BlockPosition, knownBlocks, knownMinutes, maxLeaves, type MerkleRoot } from "./merkle-tree.js";
import type { NullifierChanges, Nullifiers } from "./nullifier-store.js";
import { fieldOrder } from "./poseidon.js";
import { createProofVerifier } from "./proof-verifier.js";
import { appendLeaves, type TreeChanges } from "./tree-store.js";
import type { ZkThreads } from "./worker-pool.js";

/**
 * Costs of operations, in bytes. A byte stands for 0.05 µs on one core, so 20 MiB are about one second. Costs are rules
 * of the chain: they do not depend on the machine, the database engine or the contents of caches.
 */
const costs = {
  /** Cost of a leaf: a lookup, a part of the hashes above the leaf, and its rows; 0.7 ms. */
  leaf: 16 * 1024,
  /** Cost of a nullifier that an authority spends without a proof: a lookup and a row; 0.4 ms. */
  nullifier: 8 * 1024,
  /** Cost of a nullifier that is spent with a proof, even if the proof was verified before; 50 ms. */
  proof: 1024 * 1024,
} as const;

interface SpendContext {
  readonly sender: string;
  readonly block: BlockPosition;
  /**
   * Requester in the queue of proofs; undefined for a block that is built or applied, which never waits for requesters.
   */
  readonly requester: string | undefined;
}

export interface ZkReads {
  readonly tree: Pick<TreeChanges, "has" | "isKnownRoot" | "latest">;
  readonly nullifiers: Nullifiers;
}

export interface ZkState {
  readonly tree: TreeChanges;
  readonly nullifiers: NullifierChanges;
}

export interface ZkChangesDeps {
  readonly latest: ZkReads;
  readonly workerPool: ZkThreads;
  /** Key that proofs are verified against. Without a key, only authorities may spend. */
  readonly verificationKey: VerificationKey | undefined;
  readonly authorities: readonly string[];
}

export type ZkChanges = ReturnType<typeof createZkChanges>;

export function createZkChanges(deps: ZkChangesDeps) {
  const { latest, workerPool, verificationKey } = deps;
  const checkSpend = createSpendCheck(deps);

  return {
    /**
     * Checks a change against the latest state, before it is in a block.
     *
     * @param context the sender, the earliest block, and the requester in the queue of proofs.
     * @throws RpcError with the reason if the change would be rejected.
     */
    async check({ operation }: ZkOperation, context: SpendContext): Promise<void> {
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

    /** Starts a block. Its changes are stored with the block. */
    start(block: BlockPosition, state: ZkState) {
      const { tree, nullifiers } = state;
      const leaves = new Map<string, bigint>();
      let latestRoot: MerkleRoot | undefined;
      return {
        async prefetch(operations: readonly ZkOperation[]): Promise<void> {
          // Malformed names are rejected later, before they are looked up.
          const hashesFrom = (hashOf: typeof commitmentIn): string[] =>
            operations.map(hashOf).filter((name) => name !== undefined && hex32.test(name)) as string[];
          await tree.prefetch(hashesFrom(commitmentIn));
          await nullifiers.prefetch(hashesFrom(nullifierIn));
        },
        /**
         * Applies a change, and returns its cost. After that, only a rollback of the entire block undoes the change.
         *
         * @throws RpcError if the change is rejected.
         */
        async apply(
          { operation }: ZkOperation,
          { sender, transactionHash }: { readonly sender: string; readonly transactionHash: string },
        ): Promise<number> {
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
              await checkSpend(state, operation.value, { sender, block, requester: undefined });
              nullifiers.insert(operation.value.nullifierHash, { blockNumber: block.number, transactionHash });
              return verificationKey === undefined ? costs.nullifier : costs.proof;
            }
            case undefined:
              throw emptyOperationError();
          }
        },
        /** Appends the block's leaves to the tree. Returns the new root; undefined if the block adds no leaves. */
        async finish() {
          const appended = { leaves: [...leaves.values()], block, foldAll: workerPool.foldAll };
          return leaves.size === 0 ? undefined : await appendLeaves(tree, appended, latestRoot);
        },
      };
    },
  };
}

/** Creates the check that a nullifier may be spent. It throws an RpcError with the reason if not. */
function createSpendCheck({ workerPool, verificationKey, authorities }: ZkChangesDeps) {
  const verifier = verificationKey && createProofVerifier(workerPool, verificationKey);

  return async (
    { tree, nullifiers }: Pick<ZkReads, "nullifiers"> & { readonly tree: Pick<TreeChanges, "isKnownRoot"> },
    { nullifierHash, root, proof }: SpendNullifier,
    { sender, block, requester }: SpendContext,
  ): Promise<void> => {
    if (!hex32.test(nullifierHash)) {
      throw new RpcError("INVALID_REQUEST", "A nullifier hash must be 0x and 64 lower-case hex digits.");
    }
    const { use } = await nullifiers.find(nullifierHash);
    if (use !== undefined) {
      throw new RpcError("ALREADY_EXISTS", `The nullifier is spent already, in block ${use.blockNumber}.`);
    }
    if (verifier === undefined) {
      if (!authorities.includes(sender)) {
        throw new RpcError(
          "PERMISSION_DENIED",
          "This network has no verification key for proofs, so only an authority of its genesis may spend nullifiers.",
        );
      }
      return;
    }
    const signals = [parseFieldElement("A nullifier hash", nullifierHash), parseFieldElement("A root", root)];
    if (proof === undefined) {
      throw new RpcError("INVALID_PROOF", "The proof is missing: this network spends nullifiers with proofs.");
    }
    if (!(await tree.isKnownRoot(root, block))) {
      throw new RpcError(
        "INVALID_PROOF",
        `The proof's root was current neither after one of the last ${knownBlocks} blocks nor within the last ${knownMinutes} minutes.`,
      );
    }
    if (!(await verifier.verify(proof, signals, requester))) {
      throw new RpcError("INVALID_PROOF", "The proof is not valid for this nullifier and root.");
    }
  };
}

/**
 * Parses an element of BN254's scalar field.
 *
 * @param name subject of the error message, such as "A commitment".
 * @throws RpcError INVALID_REQUEST
 */
function parseFieldElement(name: string, text: string): bigint {
  if (!hex32.test(text)) {
    throw new RpcError("INVALID_REQUEST", `${name} must be 0x and 64 lower-case hex digits.`);
  }
  const element = BigInt(text);
  if (element >= fieldOrder) {
    throw new RpcError("INVALID_REQUEST", `${name} must be below the order of BN254's scalar field.`);
  }
  return element;
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

async function checkCommitment(
  { tree }: { readonly tree: Pick<TreeChanges, "has"> },
  commitment: string,
): Promise<bigint> {
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
