/** Paths from a root, as they travel. */
import type { Path } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { leadsTo } from "../../../src/tree/path.js";
import { treeHashes } from "./hashing.js";
import { ProofError } from "./proof-error.js";

/** What a path is to show. */
export interface Claim {
  readonly root: Uint8Array;
  readonly key: Uint8Array;
  /** Undefined where the key is to have no value. */
  readonly valueHash: Uint8Array | undefined;
}

/**
 * Checks that a path leads from a key to the root.
 *
 * @param what the sentence names it.
 * @throws ProofError path, missing
 */
export function checkPath(path: Path | undefined, { root, key, valueHash }: Claim, what: string): void {
  if (path === undefined) {
    throw new ProofError("missing", `The answer has no path for ${what}.`);
  }
  const { siblings, other } = path;
  if (!leadsTo(root, treeHashes, key, valueHash, { siblings, other })) {
    const is = valueHash === undefined ? "is not there" : "is as the node says";
    throw new ProofError("path", `The proof that ${what} ${is} does not lead to the root that was signed.`);
  }
}
