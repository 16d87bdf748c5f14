/** Creates the leaves of the state tree except those of programs, which are in ../storage. See docs/proofs.md. */
import { stateHashes } from "./node-hashes.js";
import type { Leaf } from "./path.js";

/** Creates the leaf of a sender's last nonce. */
export function senderLeaf({ publicKey, nonce }: { readonly publicKey: Uint8Array; readonly nonce: bigint }): Leaf {
  return { key: stateHashes.senderKey(publicKey), valueHash: stateHashes.sender(nonce) };
}

/** Creates the leaf of a spent nullifier. */
export function nullifierLeaf(spent: {
  readonly nullifier: Uint8Array;
  readonly blockNumber: bigint;
  readonly transactionHash: Uint8Array;
}): Leaf {
  const { nullifier, blockNumber, transactionHash } = spent;
  return {
    key: stateHashes.nullifierKey(nullifier),
    valueHash: stateHashes.nullifier(blockNumber, transactionHash),
  };
}

/** Creates the leaf of the commitment tree, which must have at least one commitment. */
export function commitmentsLeaf(tree: { readonly root: Uint8Array; readonly leafCount: number }): Leaf {
  return { key: stateHashes.commitmentsKey(), valueHash: stateHashes.commitments(tree.root, tree.leafCount) };
}
