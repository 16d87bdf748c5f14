/** Target of a snapshot sync: stores each entry with its feature, and verifies that all entries form one state. */
import type { SnapshotEntry } from "../../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { fromHex32, sha256, toHex32 } from "../../base/crypto/hash.js";
import { mapYielding } from "../../base/async/yielding.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import {
  type CheckedHeader,
  clearHeaders,
  importHeaders,
  listHeaders,
  setLowestBlock,
} from "../../chain/blocks/header-store.js";
import { clearSenders, importSenders } from "../../chain/blocks/sender-store.js";
import { decodeHeader, verifyHeader } from "../../chain/transactions/transaction.js";
import type { Database, DatabaseTransaction, Queries } from "../../db/queries/database.js";
import { RpcError } from "../../rpc/errors.js";
import {
  areLeavesOf,
  foldChunks,
  type SnapshotDescription,
  decodeDescription,
  WrongSnapshot,
} from "../../snapshot/format.js";
import { type SnapshotTarget, WrongPiece } from "../../snapshot/download.js";
import { startSync, endSync, readSync, saveChunk, saveLeafCount, saveLowestHeader } from "../../snapshot/sync-store.js";
import { InvalidProgram } from "../../storage/changes/restored-program.js";
import {
  areInCreationOrder,
  checkRestored,
  type CheckedProgram,
  clearPrograms,
  advanceProgramIds,
  importPrograms,
} from "../../storage/changes/program-snapshot-store.js";
import { changeTree } from "../../tree/change.js";
import { isSame } from "../../tree/hashes.js";
import { stateHashes } from "../../tree/node-hashes.js";
import { clearAllTrees, createPageStore } from "../../tree/page-store.js";
import type { Leaf } from "../../tree/path.js";
import { provePath } from "../../tree/prove.js";
import { readRoot } from "../../tree/read-root.js";
import { commitmentsLeaf, nullifierLeaf, senderLeaf } from "../../tree/state-leaves.js";
import type { FoldAll } from "../../zk/fold.js";
import { hasAllKnownRoots, clearZk, partsHashToRoot, importLeaves, importNullifiers } from "../../zk/snapshot-store.js";

interface SnapshotTargetDeps {
  readonly database: Pick<Database, "read">;
  /** Runs work in one transaction, which fails if this node may not write. */
  readonly transaction: <T>(work: (db: DatabaseTransaction) => Promise<T>) => Promise<T>;
  readonly genesis: Genesis;
  readonly foldAll: FoldAll;
  /** Lowest block number for which a snapshot is worth a sync. */
  readonly minBlock: bigint;
}

/** Number of headers that are read at a time. */
const portionHeaders = 1_000;

/** Creates the target, which stores everything in the node's database. */
export function createSnapshotTarget({
  database,
  transaction,
  genesis,
  foldAll,
  minBlock,
}: SnapshotTargetDeps): SnapshotTarget {
  return {
    state: () => readSync(database.read),
    isWorthwhile: (number) => number >= minBlock,
    start: ({ bytes }, number) => transaction((db) => startSync(db, bytes, number)),

    check({ snapshot, tree }) {
      const header = decodeSignedHeader(snapshot, genesis);
      if (!isSame(foldChunks(snapshot.chunks), fromHex32(header.stateRoot))) {
        throw new WrongSnapshot("Its chunks do not produce the state root that an authority has signed.");
      }
      if (!partsHashToRoot(tree)) {
        throw new WrongSnapshot("The parts of its commitment tree do not produce its root.");
      }
      if (header.number < 1n) {
        throw new WrongSnapshot("It is a snapshot of block 0.");
      }
      return header.number;
    },

    async storeHeaders(from, signed) {
      const headers = await mapYielding(signed, (one): CheckedHeader => {
        try {
          return { hash: sha256(one.header), header: decodeSignedHeader(one, genesis), signed: one };
        } catch (error) {
          throw error instanceof WrongSnapshot ? new WrongPiece(error.message) : error;
        }
      });
      await transaction((db) => storeHeaders(db, from, headers, genesis));
    },

    async storeChunk(description, chunk, received) {
      const entries = await sortEntries(received);
      if (!areLeavesOf(description, chunk, entries.leaves)) {
        throw new WrongSnapshot(`Chunk ${chunk} has data that is not in the state that an authority has signed.`);
      }
      await transaction(async (db) => {
        if (await saveChunk(db, chunk)) {
          await storeEntries(db, entries);
        }
      }).catch(rethrowAsWrongSnapshot);
    },

    async storeLeaves({ tree }, from, leaves) {
      await transaction(async (db) => {
        const blockAndRootOf = (number: bigint) => positionOf(db, number);
        const stored = await importLeaves(db, { tree, from, leaves, foldAll, blockAndRootOf });
        if (stored !== "stored") {
          throw stored === "wrong leaves"
            ? new WrongPiece("Leaves of the commitment tree differ from those in the snapshot.")
            : new WrongSnapshot("A root of the commitment tree differs from that in its block's header.");
        }
        await saveLeafCount(db, from + leaves.length);
      });
    },

    async finish(description) {
      const header = decodeSignedHeader(description.snapshot, genesis);
      await transaction(async (db) => {
        await checkState(db, description, header.stateRoot);
        await advanceProgramIds(db);
        await setLowestBlock(db, header.number + 1n);
        await endSync(db);
      });
    },

    abandon: () =>
      transaction(async (db) => {
        await clearPrograms(db);
        await clearZk(db);
        await clearHeaders(db);
        await clearSenders(db);
        await clearAllTrees(db);
        await endSync(db);
      }),
  };
}

/**
 * Stores headers below those that are already stored. `from` is the number of the first header.
 *
 * @throws WrongPiece if the headers do not link to the next stored one, or to block 0.
 */
async function storeHeaders(db: Queries, from: number, headers: readonly CheckedHeader[], genesis: Genesis) {
  let next = await hashBefore(db, from + headers.length);
  for (const { hash, header } of headers.toReversed()) {
    if (hash !== next) {
      throw new WrongPiece("A header does not belong to the chain of the latest header.");
    }
    next = header.previousHash;
  }
  if (from === 1 && next !== genesis.hash) {
    throw new WrongPiece("The first header does not come after block 0.");
  }
  await importHeaders(db, headers);
  await saveLowestHeader(db, from);
}

/**
 * Decodes a header that an authority of this network has signed.
 *
 * @throws WrongSnapshot if none has.
 */
function decodeSignedHeader(signed: { readonly header: Uint8Array; readonly signature: Uint8Array }, genesis: Genesis) {
  try {
    const header = verifyHeader(signed, { network: genesis.hash });
    if (!genesis.authorities.includes(header.proposer)) {
      throw new WrongSnapshot("A header was not signed by an authority of this network.");
    }
    return header;
  } catch (error) {
    throw error instanceof RpcError ? new WrongSnapshot(error.message) : error;
  }
}

/**
 * Returns the hash of the block before `number`, from the stored header of `number`. If that header is not stored,
 * returns the hash of the snapshot's own header.
 */
async function hashBefore(db: Queries, number: number): Promise<string> {
  const [above] = await listHeaders(db, number, 1);
  if (above !== undefined) {
    return decodeHeader(above.header).previousHash;
  }
  const { snapshot } = (await readSync(db))!;
  return sha256(decodeDescription(snapshot).snapshot.header);
}

/** Returns the number, the time and the commitment root of a block. Throws WrongSnapshot if its header is not stored. */
async function positionOf(db: Queries, blockNumber: bigint) {
  const [stored] = await listHeaders(db, Number(blockNumber), 1);
  if (stored === undefined) {
    throw new WrongSnapshot("It has a root of a block that does not exist.");
  }
  const { number, timestampMs, commitmentRoot: root } = decodeHeader(stored.header);
  return { block: { number, timeMs: Number(timestampMs) }, root };
}

/** Entries of a chunk, by the feature that stores them. */
interface SortedEntries {
  /** Leaves in the order of the chunk. */
  readonly leaves: readonly Leaf[];
  readonly programs: readonly CheckedProgram[];
  readonly nullifiers: Parameters<typeof importNullifiers>[1];
  readonly senders: Parameters<typeof importSenders>[1];
}

/** Sorts entries by feature, and verifies the programs among them. Throws WrongSnapshot. */
async function sortEntries(entries: readonly SnapshotEntry[]): Promise<SortedEntries> {
  const programs: CheckedProgram[] = [];
  const nullifiers: SortedEntries["nullifiers"][number][] = [];
  const senders: SortedEntries["senders"][number][] = [];
  const leaves = await mapYielding(entries, async ({ entry }): Promise<Leaf> => {
    switch (entry.case) {
      case "program": {
        const program = await checkRestored(entry.value).catch(rethrowAsWrongSnapshot);
        programs.push(program);
        return program.leaf;
      }
      case "nullifier":
        nullifiers.push(entry.value);
        return nullifierLeaf(entry.value);
      case "sender":
        senders.push(entry.value);
        return senderLeaf(entry.value);
      case "commitments":
        return commitmentsLeaf(entry.value);
      case undefined:
        throw new WrongSnapshot("An entry of a chunk has an unknown kind.");
    }
  });
  return { leaves, programs, nullifiers, senders };
}

function rethrowAsWrongSnapshot(error: unknown): never {
  throw error instanceof InvalidProgram ? new WrongSnapshot(error.message) : error;
}

async function storeEntries(db: Queries, { leaves, programs, nullifiers, senders }: SortedEntries): Promise<void> {
  await importPrograms(db, programs);
  await importNullifiers(db, nullifiers);
  await importSenders(db, senders);
  const store = createPageStore(db, "");
  const { pages } = await changeTree(store.load, leaves);
  await store.save(pages);
}

/**
 * Verifies that all stored parts form one state.
 *
 * @throws WrongSnapshot if they do not.
 */
async function checkState(db: Queries, { snapshot, tree }: SnapshotDescription, stateRoot: string): Promise<void> {
  const { load } = createPageStore(db, "");
  if (toHex32(await readRoot(load)) !== stateRoot) {
    throw new WrongSnapshot("The stored data does not match the state that an authority has signed.");
  }
  const { valueHash } = await provePath(load, stateHashes.commitmentsKey());
  const expected = tree.leafCount === 0 ? undefined : commitmentsLeaf(tree).valueHash;
  if ((valueHash && toHex32(valueHash)) !== (expected && toHex32(expected))) {
    throw new WrongSnapshot("Its commitment tree does not match the state.");
  }
  if (!(await areInCreationOrder(db, snapshot.programCount))) {
    throw new WrongSnapshot("Its programs are not in the order of their creation.");
  }
  if (!(await hasAllKnownRoots(db, tree, (since) => rootsSince(db, since)))) {
    throw new WrongSnapshot("It lacks roots that spends may use.");
  }
}

/**
 * Returns the numbers of the blocks since `since` that changed the root of the commitment tree, according to their
 * headers.
 */
async function rootsSince(db: Queries, since: bigint): Promise<bigint[]> {
  const found: bigint[] = [];
  for (let from = Math.max(1, Number(since)); ; from += portionHeaders) {
    const headers = await listHeaders(db, from, portionHeaders);
    for (const { header } of headers) {
      const { number, commitmentRoot } = decodeHeader(header);
      if (commitmentRoot !== undefined) {
        found.push(number);
      }
    }
    if (headers.length < portionHeaders) {
      return found;
    }
  }
}
