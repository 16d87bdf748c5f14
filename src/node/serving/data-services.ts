/** Services that read stored data: storage, with the history of programs, commitment tree, and search. */
import { fromBinary } from "@bufbuild/protobuf";
import { TransactionBodySchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { targetAddress } from "../../base/program-address.js";
import type { Chain } from "../../chain/chain.js";
import type { ListedTransaction } from "../../chain/blocks/listing-store.js";
import { checkMatchesFilter, latestPosition, readTransactionPage, toBlockSummary } from "../../chain/blocks/lists.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import type { MempoolView } from "../../chain/blocks/store-types.js";
import { statuses } from "../../chain/service.js";
import { createSearchService, type Finders } from "../../search/service.js";
import { canRead } from "../../storage/programs/access.js";
import { createStorageService, type ProgramChange, type ReadProgramHistory, toSummary } from "../../storage/service.js";
import { createZkService } from "../../zk/service.js";
import type { NodeData } from "../chain/data-caches.js";

interface DataServicesDeps {
  readonly data: NodeData;
  readonly chain: Pick<Chain, "head">;
  readonly store: ChainStore;
  readonly view: Pick<MempoolView, "transactionStatus">;
}

/** Creates the services, in any process that serves the public port. */
export function createDataServices(deps: DataServicesDeps) {
  const { programs, tree, nullifiers } = deps.data;
  return {
    storage: createStorageService(programs, createProgramHistory(deps.store)),
    zk: createZkService(tree, nullifiers),
    search: createSearchService(createFinders(deps)),
  };
}

/** Creates the lookups of the search service. They use the reads of each feature, with the access rules of its service. */
function createFinders({ data: { programs, tree, nullifiers }, chain, store, view }: DataServicesDeps): Finders {
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
      const status = await view.transactionStatus(hash);
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
      const found = await programs.findWithField(address, "", { identity });
      return found !== undefined && canRead(found.record.access, identity)
        ? toSummary({ ...found.record, owner: found.record.access.owner })
        : undefined;
    },

    async programsNamed(name, exact, identity, limit) {
      return (await programs.search(name, exact, identity, { limit, offset: 0 })).map(toSummary);
    },
  };
}

/** Limit in bytes on the transaction bodies that are read for a page. A page shows only a small part of them. */
const maxBodyBytes = 4 * 1024 * 1024;

export function createProgramHistory(
  store: Pick<ChainStore, "transactionEntries" | "listedTransactions" | "indexedFrom" | "lowestBlock">,
): ReadProgramHistory {
  return async (address, before, pageSize, signal) => {
    const [page, indexedFrom, lowest] = await Promise.all([
      readTransactionPage({
        ...{ store, pageSize, signal },
        filter: { program: address },
        before: before ?? latestPosition,
        maxBytes: maxBodyBytes,
      }),
      store.indexedFrom(),
      store.lowestBlock(),
    ]);
    return {
      changes: page.transactions.map((one) => toChange(address, one)),
      next: page.next,
      fromBlock: indexedFrom > lowest ? indexedFrom : lowest,
    };
  };
}

function toChange(address: string, listed: ListedTransaction): ProgramChange {
  const body = fromBinary(TransactionBodySchema, listed.body);
  const operation = body.operation.case === "storage" ? body.operation.value : undefined;
  checkMatchesFilter(operation !== undefined && targetAddress(operation, body) === address, listed);
  const { blockNumber, blockHash, timestampMs, hash: transactionHash } = listed;
  return { blockNumber, blockHash, timestampMs, transactionHash, sender: body.sender, operation: operation! };
}
