/** Zero-knowledge service: the commitment tree and the spent nullifiers. */
import type { ZkService } from "../../gen/gatehouse/zk/v1/zk_pb.js";
import { latestBlock } from "../base/latest-block.js";
import { RpcError } from "../rpc/errors.js";
import { memoize } from "../base/caches/read-cache.js";
import type { Implementation } from "../rpc/service.js";
import { knownBlocks, knownMinutes, type MerklePath, type MerkleRoot, type MerkleTree } from "./merkle-tree.js";
import type { Nullifiers, NullifierSearch } from "./nullifier-store.js";

const missing = {
  commitment: "The commitment is not in the tree.",
  root: `No such root was current after one of the last ${knownBlocks} blocks or within the last ${knownMinutes} minutes.`,
  "commitment under this root": "The commitment is in the tree, but came after this root.",
} as const;

export function createZkService(tree: MerkleTree, nullifiers: Nullifiers): Implementation<typeof ZkService> {
  const rootResponse = memoize(({ root: rootHash, ...rest }: MerkleRoot) => ({ rootHash, ...rest }));
  const pathResponse = memoize(toProof);
  const nullifierResponse = memoize(({ hash, use }: NullifierSearch) => ({
    used: use !== undefined,
    nullifierHash: hash,
    ...use,
  }));

  return {
    async getMerkleRoot({ block }) {
      const result = block === undefined || block === latestBlock ? await tree.root() : await tree.rootAfter(block);
      if (result === undefined) {
        throw new RpcError(
          "NOT_FOUND",
          `Roots are known after each of the last ${knownBlocks} blocks, and after those of the last ${knownMinutes} minutes; block ${block} is not one of them.`,
        );
      }
      return rootResponse(result);
    },

    async getMerkleProof({ commitment, root }) {
      const search = await tree.path(commitment, root);
      if (search.missing !== undefined) {
        throw new RpcError("NOT_FOUND", missing[search.missing]);
      }
      return pathResponse(search);
    },

    async getNullifier({ nullifierHash }) {
      return nullifierResponse(await nullifiers.find(nullifierHash));
    },
  };
}

function toProof({ commitment, siblings, blockNumber, ...rest }: MerklePath) {
  const proof = { ...rest, leaf: commitment, siblings: siblings.map((hash) => ({ hashes: [hash] })) };
  return { commitment, proof, blockNumber };
}
