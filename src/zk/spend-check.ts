/** Whether a nullifier may be spent. */
import { LRUCache } from "lru-cache";
import type { SpendNullifier } from "../../gen/gatehouse/zk/v1/operation_pb.js";
import { hex32 } from "../base/hash.js";
import { Failure } from "../rpc/errors.js";
import type { VerificationKey } from "./groth16.js";
import { knownBlocks, type TreeChanges } from "./merkle-tree.js";
import type { Nullifiers } from "./nullifiers.js";
import { readElement } from "./field-element.js";
import type { WorkerPool } from "./worker-pool.js";

/** Who spends, by which transaction, in which block. */
export interface SpendContext {
  readonly sender: string;
  readonly transactionHash: string;
  readonly blockNumber: bigint;
}

/** What a spend is checked against. */
export interface SpendState {
  readonly tree: Pick<TreeChanges, "isKnownRoot">;
  readonly nullifiers: Nullifiers;
}

/** What the check needs. */
export interface SpendCheckParts {
  readonly workerPool: Pick<WorkerPool, "verify">;
  /** What spends are verified against; where there is none, only authorities may spend. */
  readonly verificationKey: VerificationKey | undefined;
  /** Public keys of the genesis. */
  readonly authorities: readonly string[];
}

/** Throws the Failure that the spend would be rejected with. */
export type SpendCheck = (state: SpendState, spend: SpendNullifier, context: SpendContext) => Promise<void>;

/** Verdicts on proofs that are kept, so that a transaction that was checked is not verified again for its block. */
const keptVerdicts = 10_000;

/** Builds the check. */
export function createSpendCheck({ workerPool, verificationKey, authorities }: SpendCheckParts): SpendCheck {
  const verdicts = new LRUCache<string, boolean>({ max: keptVerdicts });

  async function checkProof(
    key: VerificationKey,
    { tree }: SpendState,
    { nullifierHash, root, proof }: SpendNullifier,
    { transactionHash, blockNumber }: SpendContext,
  ): Promise<void> {
    const signals = [readElement("A nullifier hash", nullifierHash), readElement("A root", root)];
    if (proof === undefined) {
      throw new Failure("INVALID_PROOF", "A nullifier is spent with a proof; there is none.");
    }
    if (!(await tree.isKnownRoot(root, blockNumber))) {
      throw new Failure("INVALID_PROOF", `The proof's root was current after none of the last ${knownBlocks} blocks.`);
    }
    let verdict = verdicts.get(transactionHash);
    if (verdict === undefined) {
      const { a, b, c } = proof;
      verdict = await workerPool.verify({ key, proof: { a, b, c }, signals });
      verdicts.set(transactionHash, verdict);
    }
    if (!verdict) {
      throw new Failure("INVALID_PROOF", "The proof does not hold for this nullifier and root.");
    }
  }

  return async (state, spend, context) => {
    const { nullifierHash } = spend;
    if (!hex32.test(nullifierHash)) {
      throw new Failure("INVALID_REQUEST", "A nullifier hash is 0x and 64 lower-case hex digits.");
    }
    const { use } = await state.nullifiers.find(nullifierHash);
    if (use !== undefined) {
      throw new Failure("ALREADY_EXISTS", `The nullifier is spent already, in block ${use.blockNumber}.`);
    }
    if (verificationKey !== undefined) {
      await checkProof(verificationKey, state, spend, context);
    } else if (!authorities.includes(context.sender)) {
      throw new Failure(
        "PERMISSION_DENIED",
        "This network has no verification key for proofs, so only an authority of its genesis spends nullifiers.",
      );
    }
  };
}
