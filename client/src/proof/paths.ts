/** Verification of paths from a key to a root. */
import type { Path } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { leadsTo } from "../../../src/tree/path.js";
import { treeHashes } from "./hashing.js";
import { ProofError } from "./proof-error.js";

/** Claim that a path proves. */
export interface LeafClaim {
  readonly root: Uint8Array;
  readonly key: Uint8Array;
  /** Hash of the value; undefined if the claim is that the key has none. */
  readonly valueHash: Uint8Array | undefined;
}

/**
 * Verifies that a path leads from a key to the root.
 *
 * @param what name of the value, for the error message.
 * @throws ProofError path, missing
 */
export function checkPath(path: Path | undefined, { root, key, valueHash }: LeafClaim, subject: string): void {
  if (path === undefined) {
    throw new ProofError("missing", `The response has no path for ${subject}.`);
  }
  const { siblings, other } = path;
  if (!leadsTo(root, treeHashes, key, valueHash, { siblings, other })) {
    const claim = valueHash === undefined ? "does not exist" : "is as the response says";
    throw new ProofError("path", `The proof that ${subject} ${claim} does not lead to the root that was signed.`);
  }
}
