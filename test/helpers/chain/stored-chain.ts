/** A stored chain with data of every kind, and the paths that read it. */
import { AccessMode } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { openDatabase } from "../../../src/db/open.js";
import { migrate } from "../../../src/node/migrations/migrate.js";
import { createChainStore } from "../../../src/chain/chain-store.js";
import { stateIn } from "../../../src/node/chain/transaction-executor.js";
import { programAddress } from "../../../src/storage/changes/write.js";
import { toHex } from "../../../src/zk/poseidon.js";
import { openChain } from "./chain.js";
import { type TestKey, testKey } from "./keys.js";
import { commit, createPublic, type Operation, signTransaction, signZk, spend, type ZkChange } from "./transactions.js";

export const [authority, alice] = [testKey(1), testKey(2)];

/** The content of the chain. */
export type StoredChain = Awaited<ReturnType<typeof storeChain>>;

const smallText = '{"title": "A document that is small", "items": [1, 2, 3]}';
const largeText = JSON.stringify({
  title: "A document that is large",
  text: "some words in a row ".repeat(500),
  list: Array.from({ length: 6_000 }, (_, i) => 100_000 + i),
  end: true,
});

/**
 * Fills a new database. `small` and `large` are documents, of which the second is stored in parts, with an array `list` in
 * chunks; `empty` is a public program without data.
 */
export async function storeChain(url: string) {
  const database = await openDatabase(url);
  try {
    await migrate(database);
    const chain = await openChain(database, [authority]);
    const store = createChainStore(database, stateIn);
    const nonces = new Map<TestKey, number>();
    const transactions: string[] = [];
    const next = (key: TestKey): number => {
      const nonce = (nonces.get(key) ?? 0) + 1;
      nonces.set(key, nonce);
      return nonce;
    };
    const change = async (operation: Operation, key = alice): Promise<number> => {
      const nonce = next(key);
      transactions.push(await chain.submit(signTransaction(key, nonce, operation)));
      return nonce;
    };
    const changeZk = async (operation: ZkChange, key = alice): Promise<void> => {
      transactions.push(await chain.submit(signZk(key, next(key), operation)));
    };
    const make = async (name: string, json: string): Promise<string> =>
      programAddress(alice.publicKey, name, BigInt(await change(createPublic(name, json))), "");
    const commitments = Array.from({ length: 21 }, (_, i) => toHex(BigInt(1_000 + i)));
    const nullifier = toHex(77n);

    const small = await make("small one", smallText);
    await chain.produceBlock(authority);
    const large = await make("large one", largeText);
    const empty = programAddress(alice.publicKey, "empty one", BigInt(next(alice)), "");
    const nonce = nonces.get(alice)!;
    transactions.push(
      await chain.submit(
        signTransaction(alice, nonce, {
          case: "createProgram",
          value: { programName: "empty one", access: { mode: AccessMode.PUBLIC } },
        }),
      ),
    );
    await chain.produceBlock(authority);
    for (const commitment of commitments.slice(0, 15)) {
      await changeZk(commit(commitment));
    }
    await chain.produceBlock(authority);
    await changeZk(spend(nullifier), authority);
    for (const commitment of commitments.slice(15)) {
      await changeZk(commit(commitment));
    }
    await change({ case: "setField", value: { storageAddress: small, field: "more", value: '"of it"' } });
    await change({ case: "appendItem", value: { storageAddress: large, field: "list", value: "7" } });
    await chain.produceBlock(authority);
    const blocks = Number((await store.head())!.number);
    const blockHashes: string[] = [];
    for (let number = 1; number <= blocks; number++) {
      blockHashes.push((await store.block(BigInt(number)))!.hash);
    }
    return { blocks, blockHashes, transactions, small, large, empty, commitments, nullifier };
  } finally {
    await database.close();
  }
}

/** Returns paths that read all of the data. */
export function pathsOf(stored: StoredChain): string[] {
  const { blocks, blockHashes, transactions, small, large, empty, commitments, nullifier } = stored;
  const program = "/storage-program";
  return [
    "/genesis",
    "/chain/head",
    ...Array.from({ length: blocks }, (_, i) => `/chain/blocks/${i + 1}`),
    ...blockHashes.map((hash) => `/chain/blocks/hash/${hash}`),
    ...transactions.map((hash) => `/chain/transactions/${hash}`),
    ...[small, large, empty].flatMap((address) => [`${program}/${address}`, `${program}/${address}/all`]),
    ...[small, large].flatMap((address) => [`${program}/${address}/fields`, `${program}/${address}/field/title`]),
    `${program}/${small}/field/more`,
    `${program}/${small}/field/items/item/1`,
    `${program}/${large}/field/list`,
    `${program}/${large}/field/text`,
    `${program}/${large}/type/end`,
    `${program}/${large}/has/end`,
    ...[0, 3_000, 6_000].map((index) => `${program}/${large}/field/list/item/${index}`),
    `${program}/owner/${alice.publicKey}`,
    `${program}/search?q=one`,
    "/zk/merkle-root",
    ...[commitments[0]!, commitments[9]!, commitments[20]!].map((one) => `/zk/merkle/proof/${one}`),
    `/zk/nullifier/${nullifier}`,
  ];
}
