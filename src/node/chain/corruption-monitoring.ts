/**
 * Reads of the node's database with corruption monitoring. Data that differs from what was stored is an error for the
 * caller. The chain then counts as failed until a later read of the same data succeeds.
 */
import type { CorruptionMonitor } from "../../base/errors/corruption.js";
import { CorruptionError } from "../../base/errors/corruption.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import type { Programs } from "../../storage/programs/programs.js";
import type { ReadablePrograms } from "../../storage/stores/program-list-store.js";
import type { MerkleTree } from "../../zk/merkle-tree.js";
import type { Nullifiers } from "../../zk/nullifier-store.js";

/** Returns true: a list may lack entries that corruption has made unreachable. */
const always = (): boolean => true;
/** Returns false: the result is certain, even if other data is corrupt. */
const never = (): boolean => false;

export function monitorStore<State>(store: ChainStore<State>, corruption: CorruptionMonitor): ChainStore<State> {
  const isPruned = async (number: bigint): Promise<boolean> => number < (await store.lowestBlock());

  /**
   * Reads data that must exist for each retained block up to the latest one.
   *
   * @throws CorruptionError if the data is missing.
   */
  async function readRequired<Found>(
    number: bigint,
    find: () => Promise<Found | undefined>,
  ): Promise<Found | undefined> {
    const found = await find();
    if (
      found !== undefined ||
      number < 1n ||
      number > ((await store.head())?.number ?? 0n) ||
      (await isPruned(number))
    ) {
      return found;
    }
    // The block may have been stored after the first read.
    const again = await find();
    if (again === undefined) {
      throw new CorruptionError(`Block ${number} is missing in the database.`);
    }
    return again;
  }

  return {
    ...store,
    head: () => corruption.read("the latest block", () => store.head(), never),
    block: (number) => corruption.read(`block ${number}`, () => readRequired(number, () => store.block(number)), never),
    header: (number) =>
      corruption.read(`the header of block ${number}`, () => readRequired(number, () => store.header(number)), never),
    blockSize: (by) =>
      "hash" in by
        ? corruption.read(`the number of block ${by.hash}`, () => store.blockSize(by))
        : corruption.read(
            `the size of block ${by.number}`,
            () => readRequired(by.number, () => store.blockSize(by)),
            never,
          ),
    recentBlocks: (...query) => corruption.read("a list of blocks", () => store.recentBlocks(...query), always),
    transactionEntries: (...query) =>
      corruption.read("a list of transactions", () => store.transactionEntries(...query), always),
    listedTransactions: (positions) =>
      corruption.read("transactions of a list", () => store.listedTransactions(positions), always),
    blockOf: (hash) => corruption.read(`transaction ${hash}`, () => store.blockOf(hash)),
    transactionStatus: (hash) =>
      corruption.read(`the status of transaction ${hash}`, () => store.transactionStatus(hash)),
    lastNonce: (sender) => corruption.read(`the last nonce of ${sender}`, () => store.lastNonce(sender), never),
    write: (head, work) => corruption.run("the rows that a block changes", () => store.write(head, work)),
  };
}

const isAbsent = (found: unknown): boolean => found === undefined;
/** Returns true if a program was read. One that is hidden from its reader was not. */
const isPresent = (found: unknown): boolean => found !== undefined;

export function monitorPrograms(programs: Programs, corruption: CorruptionMonitor): Programs {
  const nameOf = (address: string, part: string): string => `the storage program ${address}${part}`;
  return {
    findWithData: (address, reader) =>
      corruption.read(nameOf(address, ""), () => programs.findWithData(address, reader), isAbsent, isPresent),
    findWithField: (address, name, reader) =>
      corruption.read(
        nameOf(address, `, field ${name}`),
        () => programs.findWithField(address, name, reader),
        (found) => found?.field === undefined,
        isPresent,
      ),
    findWithItem: (address, name, index, reader) =>
      corruption.read(
        nameOf(address, `, item ${index} of field ${name}`),
        () => programs.findWithItem(address, name, index, reader),
        (found) => found?.field === undefined,
        isPresent,
      ),
    listByOwner: (...query) => corruption.read("a list of programs", () => programs.listByOwner(...query), always),
    search: (...query) => corruption.read("a search of programs", () => programs.search(...query), always),
    createdCount: () => corruption.read("the number of programs", () => programs.createdCount()),
  };
}

export function monitorReadable(readable: ReadablePrograms, corruption: CorruptionMonitor): ReadablePrograms {
  return {
    readableOf: (...query) => corruption.read("the readers of programs", () => readable.readableOf(...query)),
    ownersOf: (...query) => corruption.read("the owners of programs", () => readable.ownersOf(...query)),
  };
}

export function monitorTree(tree: MerkleTree, corruption: CorruptionMonitor): MerkleTree {
  return {
    root: () => corruption.read("the latest root", async () => await tree.root()),
    rootAfter: (block) => corruption.read(`the root after block ${block}`, () => tree.rootAfter(block)),
    path: (commitment, root) =>
      corruption.read(
        `the path of ${commitment} to ${root ?? "the latest root"}`,
        async () => await tree.path(commitment, root),
        ({ missing }) => missing !== undefined,
      ),
  };
}

export function monitorNullifiers(nullifiers: Nullifiers, corruption: CorruptionMonitor): Nullifiers {
  return {
    find: (hash) =>
      corruption.read(
        `the nullifier ${hash}`,
        async () => await nullifiers.find(hash),
        ({ use }) => use === undefined,
      ),
  };
}
