/** The leaves of the state tree that are no programs, by docs/proofs.md. Those of programs are in ../storage. */
import { stateHashes } from "./node-hashes.js";
import type { Leaf } from "./path.js";

/** The last nonce of a sender. */
export function senderLeaf({ publicKey, nonce }: { readonly publicKey: Uint8Array; readonly nonce: bigint }): Leaf {
  return { key: stateHashes.senderKey(publicKey), valueHash: stateHashes.sender(nonce) };
}

/** Where a nullifier was spent. */
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

/** The commitment tree, which has leaves. */
export function commitmentsLeaf(tree: { readonly root: Uint8Array; readonly leafCount: number }): Leaf {
  return { key: stateHashes.commitmentsKey(), valueHash: stateHashes.commitments(tree.root, tree.leafCount) };
}
