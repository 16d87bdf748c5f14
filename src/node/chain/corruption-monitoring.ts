/**
 * Reads of the node's database with corruption monitoring. Data that differs from what was stored is an error for the
 * caller. The chain then counts as failed until a later read of the same data succeeds.
 */
import type { CorruptionMonitor } from "../../base/errors/corruption.js";
import { CorruptionError } from "../../base/errors/corruption.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import type { Programs } from "../../storage/programs/programs.js";
import type { ReadablePrograms } from "../../storage/stores/readable-store.js";
import type { MerkleTree } from "../../zk/merkle-tree.js";
import type { Nullifiers } from "../../zk/nullifiers.js";

/** Returns true: a list may lack entries that corruption has made unreachable. */
const always = (): boolean => true;

export function watchStore<State>(store: ChainStore<State>, damage: CorruptionMonitor): ChainStore<State> {
  const isPruned = async (number: bigint): Promise<boolean> => number < (await store.lowestBlock());

  /**
   * Reads data that must exist for each retained block up to the latest one.
   *
   * @throws CorruptionError if the data is missing.
   */
  async function needed<Found>(number: bigint, find: () => Promise<Found | undefined>): Promise<Found | undefined> {
    const found = await find();
    if (
      found !== undefined ||
      number < 1n ||
      number > ((await store.head())?.number ?? 0n) ||
      (await isPruned(number))
    ) {
      return found;
    }
    // The block may have been stored between the two reads.
    const again = await find();
    if (again === undefined) {
      throw new CorruptionError(`Block ${number} is missing in the database.`);
    }
    return again;
  }

  /** Returns false: a block above the latest one does not exist, whatever else is corrupt. */
  const lacks = (): boolean => false;
  return {
    ...store,
    head: () => damage.read("the latest block", () => store.head(), lacks),
    block: (number) => damage.read(`block ${number}`, () => needed(number, () => store.block(number)), lacks),
    header: (number) =>
      damage.read(`the header of block ${number}`, () => needed(number, () => store.header(number)), lacks),
    blockSize: (by) =>
      "hash" in by
        ? damage.read(`the number of block ${by.hash}`, () => store.blockSize(by))
        : damage.read(`the size of block ${by.number}`, () => needed(by.number, () => store.blockSize(by)), lacks),
    recentBlocks: (...given) => damage.read("a list of blocks", () => store.recentBlocks(...given), always),
    transactionEntries: (...given) =>
      damage.read("a list of transactions", () => store.transactionEntries(...given), always),
    listedTransactions: (places) =>
      damage.read("transactions of a list", () => store.listedTransactions(places), always),
    blockOf: (hash) => damage.read(`transaction ${hash}`, () => store.blockOf(hash)),
    transactionStatus: (hash) => damage.read(`the status of transaction ${hash}`, () => store.transactionStatus(hash)),
    lastNonce: (sender) => damage.read(`the last nonce of ${sender}`, () => store.lastNonce(sender), lacks),
    write: (newest, work) => damage.run("the rows that a block changes", () => store.write(newest, work)),
  };
}

export function watchPrograms(programs: Programs, damage: CorruptionMonitor): Programs {
  const named = (address: string, what: string): string => `the storage program ${address}${what}`;
  return {
    findWithData: (address) => damage.read(named(address, ""), () => programs.findWithData(address)),
    findWithFieldNames: (address) =>
      damage.read(named(address, ", its fields"), () => programs.findWithFieldNames(address)),
    findWithField: (address, name) =>
      damage.read(
        named(address, `, field ${name}`),
        () => programs.findWithField(address, name),
        (found) => found?.field === undefined,
      ),
    findWithItem: (address, name, index) =>
      damage.read(
        named(address, `, item ${index} of field ${name}`),
        () => programs.findWithItem(address, name, index),
        (found) => found?.field === undefined,
      ),
    listByOwner: (...given) => damage.read("a list of programs", () => programs.listByOwner(...given), always),
    search: (...given) => damage.read("a search of programs", () => programs.search(...given), always),
    createdCount: () => damage.read("the number of programs", () => programs.createdCount()),
  };
}

export function watchReadable(readable: ReadablePrograms, damage: CorruptionMonitor): ReadablePrograms {
  return {
    readableOf: (...given) => damage.read("the readers of programs", () => readable.readableOf(...given)),
    ownersOf: (...given) => damage.read("the owners of programs", () => readable.ownersOf(...given)),
  };
}

export function watchTree(tree: MerkleTree, damage: CorruptionMonitor): MerkleTree {
  return {
    root: () => damage.read("the latest root", async () => await tree.root()),
    rootAfter: (block) => damage.read(`the root after block ${block}`, () => tree.rootAfter(block)),
    path: (commitment, root) =>
      damage.read(
        `the path of ${commitment} to ${root ?? "the latest root"}`,
        async () => await tree.path(commitment, root),
        ({ missing }) => missing !== undefined,
      ),
  };
}

export function watchNullifiers(nullifiers: Nullifiers, damage: CorruptionMonitor): Nullifiers {
  return {
    find: (hash) =>
      damage.read(
        `the nullifier ${hash}`,
        async () => await nullifiers.find(hash),
        ({ use }) => use === undefined,
      ),
  };
}
