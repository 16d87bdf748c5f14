/** Checks that a nullifier may be spent. */
import type { SpendNullifier } from "../../gen/gatehouse/zk/v1/operation_pb.js";
import { hex32 } from "../base/crypto/hash.js";
import { RpcError } from "../rpc/errors.js";
import type { VerificationKey } from "./groth16.js";
import { type BlockPosition, knownBlocks, knownMinutes, type TreeChanges } from "./merkle-tree.js";
import { createProofVerifier, type ProofVerifier } from "./proof-verifier.js";
import type { Nullifiers } from "./nullifiers.js";
import { parseFieldElement } from "./field-element.js";
import type { ZkThreads } from "./worker-pool.js";

/** Sender and block of a spend. */
export interface SpendContext {
  readonly sender: string;
  readonly block: BlockPosition;
  /**
   * Requester in the queue of proofs; undefined for a block that is built or applied, which never waits for requesters.
   */
  readonly requester: string | undefined;
}

/** State that a spend is checked against. */
export interface SpendState {
  readonly tree: Pick<TreeChanges, "isKnownRoot">;
  readonly nullifiers: Nullifiers;
}

export interface SpendCheckDeps {
  readonly workerPool: Pick<ZkThreads, "verify" | "threads">;
  /** Key that proofs are verified against. Without a key, only authorities may spend. */
  readonly verificationKey: VerificationKey | undefined;
  /** Public keys of the authorities in the genesis. */
  readonly authorities: readonly string[];
}

/**
 * Checks a spend.
 *
 * @throws RpcError with the reason if the spend would be rejected.
 */
export type SpendCheck = (state: SpendState, spend: SpendNullifier, context: SpendContext) => Promise<void>;

export function createSpendCheck({ workerPool, verificationKey, authorities }: SpendCheckDeps): SpendCheck {
  const verifier = verificationKey && createProofVerifier(workerPool, verificationKey);

  async function checkProof(
    { verify }: ProofVerifier,
    { tree }: SpendState,
    { nullifierHash, root, proof }: SpendNullifier,
    { block, requester }: SpendContext,
  ): Promise<void> {
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
    if (!(await verify(proof, signals, requester))) {
      throw new RpcError("INVALID_PROOF", "The proof is not valid for this nullifier and root.");
    }
  }

  return async (state, spend, context) => {
    const { nullifierHash } = spend;
    if (!hex32.test(nullifierHash)) {
      throw new RpcError("INVALID_REQUEST", "A nullifier hash must be 0x and 64 lower-case hex digits.");
    }
    const { use } = await state.nullifiers.find(nullifierHash);
    if (use !== undefined) {
      throw new RpcError("ALREADY_EXISTS", `The nullifier is spent already, in block ${use.blockNumber}.`);
    }
    if (verifier !== undefined) {
      await checkProof(verifier, state, spend, context);
    } else if (!authorities.includes(context.sender)) {
      throw new RpcError(
        "PERMISSION_DENIED",
        "This network has no verification key for proofs, so only an authority of its genesis may spend nullifiers.",
      );
    }
  };
}
