/** Lookups of the search service. They use the reads of each feature, with the same access rules as its own service. */
import type { Chain } from "../../chain/chain.js";
import { toBlockSummary } from "../../chain/blocks/lists.js";
import { statuses } from "../../chain/service.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import type { MempoolView } from "../../chain/blocks/store-types.js";
import type { Finders } from "../../search/service.js";
import { canRead } from "../../storage/programs/access.js";
import { toSummary } from "../../storage/service.js";
import type { NodeData } from "../chain/data-caches.js";

/** Dependencies of the lookups. */
export interface SearchDeps extends NodeData {
  readonly chain: Pick<Chain, "head">;
  readonly store: Pick<ChainStore, "recentBlocks" | "blockSize" | "lastNonce"> & Pick<MempoolView, "transactionStatus">;
}

/** Creates the lookups. */
export function createFinders({ chain, store, programs, tree, nullifiers }: SearchDeps): Finders {
  const firstOnly = { limit: 1, offset: 0 };

  async function findBlock(number: bigint) {
    if (number < 1n || number > (chain.head()?.number ?? 0n)) {
      return undefined;
    }
    const [block] = await store.recentBlocks(number + 1n, 1);
    return block && toBlockSummary(block);
  }

  return {
    block: (number) => findBlock(number ?? chain.head()?.number ?? 0n),

    async blockByHash(hash) {
      const size = await store.blockSize({ hash });
      return size && (await findBlock(size.number));
    },

    async transaction(hash) {
      const status = await store.transactionStatus(hash);
      return (
        status && {
          ...{ hash, status: statuses[status.status] },
          ...(status.status === "included" && { blockNumber: status.blockNumber }),
        }
      );
    },

    async identity(address, identity) {
      const [nonce, owned] = await Promise.all([
        store.lastNonce(address),
        programs.listByOwner(address, identity, firstOnly),
      ]);
      return nonce === undefined && owned.length === 0
        ? undefined
        : { address, nonce: nonce ?? 0n, hasPrograms: owned.length > 0 };
    },

    async commitment(commitment) {
      const found = await tree.path(commitment, undefined);
      return found.missing === undefined ? { commitment, leafIndex: found.leafIndex } : undefined;
    },

    async nullifier(nullifierHash) {
      const { use } = await nullifiers.find(nullifierHash);
      return use && { nullifierHash, ...use };
    },

    async program(address, identity) {
      const found = await programs.findWithField(address, "");
      return found !== undefined && canRead(found.record.access, identity)
        ? toSummary({ ...found.record, owner: found.record.access.owner })
        : undefined;
    },

    async programsNamed(name, exact, identity, limit) {
      return (await programs.search(name, exact, identity, { limit, offset: 0 })).map(toSummary);
    },
  };
}
