/** The zero-knowledge service: the commitment tree and the used nullifiers. */
import type { ZkService } from "../../gen/gatehouse/zk/v1/zk_pb.js";
import { Failure } from "../errors.js";
import type { Implementation } from "../rpc/service.js";
import { normalizeHash } from "../hash.js";
import type { MerkleTree } from "./merkle-tree.js";
import type { Nullifiers } from "./nullifiers.js";

/** What the service reads. */
export interface ZkServiceParts {
  readonly tree: MerkleTree;
  readonly nullifiers: Nullifiers;
}

/** Builds the service. */
export function createZkService({ tree, nullifiers }: ZkServiceParts): Implementation<typeof ZkService> {
  return {
    async getMerkleRoot() {
      const { root, blockNumber, leafCount } = await tree.root();
      return { rootHash: root, blockNumber, leafCount };
    },

    async getMerkleProof(request) {
      const commitment = normalizeHash("A commitment", request.commitment);
      const path = await tree.path(commitment);
      if (path === undefined) {
        throw new Failure("NOT_FOUND", "The commitment is not in the tree.");
      }
      const { leafIndex, siblings, pathIndices, root, blockNumber } = path;
      return {
        commitment,
        proof: {
          siblings: siblings.map((hash) => ({ hashes: [hash] })),
          pathIndices,
          root,
          leaf: commitment,
          leafIndex,
        },
        blockNumber,
      };
    },

    async getNullifier(request) {
      const nullifierHash = normalizeHash("A nullifier hash", request.nullifierHash);
      const use = await nullifiers.find(nullifierHash);
      return use === undefined ? { used: false, nullifierHash } : { used: true, nullifierHash, ...use };
    },
  };
}
