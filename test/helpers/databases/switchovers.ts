/** Servers of PostgreSQL that fail under a node that is at work, and what became of what it told of. */
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { setTimeout as sleep } from "node:timers/promises";
import { ChainService, TransactionStatus } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { verifyHeader } from "../../../src/chain/transactions/transaction.js";
import { type TestKey, testKey } from "../chain/keys.js";
import type { End, PostgresPair } from "./postgres-pair.js";
import { createPublic, signTransaction } from "../chain/transactions.js";
import { eventually, until } from "../nodes/until.js";

const ends: readonly End[] = ["stopped", "stopped", "stopped", "aborted", "killed"];
/** Without a block for so long, there comes none. */
const patienceMs = 60_000;

type ChainClient = Client<typeof ChainService>;

/** What was told of, while the load is on. */
interface Told {
  readonly load: AbortController;
  lastBlockMs: number;
  readonly taken: Set<string>;
  readonly blocks: Map<bigint, string>;
  readonly doubled: bigint[];
}

/** Load on a node whose database is changed. */
export interface Changes {
  /** URL of a node that makes the blocks of the network of the tests. */
  readonly url: string;
  readonly changes: number;
  /** Changes the servers. Resolves once they are all as they should be. */
  readonly change: (index: number) => Promise<void>;
  readonly say?: (what: string) => void;
}

/** Returns a change in which the servers of a pair change places. */
export function changePlacesOf(pair: PostgresPair): Changes["change"] {
  return (index) => pair.changePlaces(ends[index % ends.length]!);
}

/**
 * Submits transactions all the while the servers change, one change after the other.
 *
 * @throws Error when the node makes no blocks any more.
 */
export async function changeUnderLoad({ url, changes, change, say }: Changes) {
  const client = createClient(ChainService, createGrpcTransport({ baseUrl: url }));
  const told: Told = {
    ...{ load: new AbortController(), lastBlockMs: performance.now() },
    ...{ taken: new Set<string>(), blocks: new Map<bigint, string>(), doubled: [] },
  };
  const senders = [2, 3, 4, 5].map(testKey);
  const load = Promise.all([watchHead(client, told), ...senders.map((key) => submitAs(key, client, told))]);
  const withoutMs: number[] = [];
  try {
    await until(() => told.blocks.size > 3);
    for (let i = 0; i < changes; i++) {
      say?.(`change ${i + 1} of ${changes}`);
      withoutMs.push(await changeOnce(() => change(i), told));
    }
  } finally {
    told.load.abort();
    await load;
  }
  await eventually("nothing waits any more", async () =>
    (await Promise.all([...told.taken].map((hash) => isSettled(hash, client)))).every(Boolean),
  );
  const made = await readChain(client);
  const lost = [...told.blocks].filter(([number, hash]) => made.blocks.get(number) !== hash).map(([, hash]) => hash);
  const lostTransactions = [...told.taken].filter((hash) => !made.transactions.has(hash));
  return {
    /** How long there was no block at each change. */
    withoutMs,
    transactions: told.taken.size,
    blocks: made.blocks.size - 1,
    /** Blocks and transactions that were told of and are not in the chain. */
    lost: [...lost, ...lostTransactions],
    /** Numbers that two blocks were told of by, and transactions that two blocks have. */
    doubled: [...told.doubled, ...made.doubled],
  };
}

/** The longest time without a block, until two came after the change. */
async function changeOnce(run: () => Promise<void>, told: Told): Promise<number> {
  let [longestMs, enough] = [0, Infinity];
  const change = run().then(() => {
    enough = told.blocks.size + 2;
  });
  while (told.blocks.size < enough) {
    longestMs = Math.max(longestMs, performance.now() - told.lastBlockMs);
    if (longestMs > patienceMs) {
      throw new Error(`There was no block any more for ${patienceMs} ms.`);
    }
    await Promise.race([sleep(5), change.then(() => sleep(5))]);
  }
  await change;
  return longestMs;
}

function isOn({ load }: Told): boolean {
  return !load.signal.aborted;
}

/** Submits one transaction after the other, each until it is taken, and waits for a block now and then. */
async function submitAs(key: TestKey, client: ChainClient, told: Told): Promise<void> {
  for (let nonce = 1; isOn(told); nonce++) {
    const transaction = signTransaction(key, nonce, createPublic(`p${nonce}`, `{"n":${nonce}}`));
    const hash = sha256(transaction.body);
    while (isOn(told) && !told.taken.has(hash)) {
      await client.submitTransaction({ transaction }).then(
        () => told.taken.add(hash),
        () => sleep(20),
      );
    }
    while (isOn(told) && nonce % 3 === 0 && !(await isSettled(hash, client).catch(() => false))) {
      await sleep(20);
    }
  }
}

/** Whether it is in a block, or never will be. */
async function isSettled(hash: string, client: ChainClient): Promise<boolean> {
  return (await client.getTransaction({ hash })).status !== TransactionStatus.PENDING;
}

/** Looks for new blocks; each number has one hash. */
async function watchHead(client: ChainClient, told: Told): Promise<void> {
  while (isOn(told)) {
    const head = await client.getHead({}).catch(() => undefined);
    // It has too much to do to say so.
    if (head === undefined) {
      await sleep(100);
      continue;
    }
    const { number, hash } = head;
    if ((told.blocks.get(number) ?? hash) !== hash) {
      told.doubled.push(number);
    } else if (!told.blocks.has(number)) {
      told.blocks.set(number, hash);
      told.lastBlockMs = performance.now();
    }
    await sleep(5);
  }
}

/**
 * The hashes of all blocks by their numbers, and of all transactions.
 *
 * @throws Error when a block does not follow on the one before.
 */
async function readChain(client: ChainClient) {
  const { genesisHash } = await client.getHead({});
  const blocks = new Map([[0n, genesisHash]]);
  const transactions = new Set<string>();
  const doubled: string[] = [];
  for await (const { block } of client.listBlocks({ fromNumber: 1n })) {
    const { number, previousHash } = verifyHeader(block!, { network: genesisHash });
    if (blocks.get(number - 1n) !== previousHash || blocks.has(number)) {
      throw new Error(`Block ${number} does not follow on the one before.`);
    }
    blocks.set(number, sha256(block!.header));
    for (const { body } of block!.transactions) {
      const hash = sha256(body);
      if (transactions.has(hash)) {
        doubled.push(hash);
      }
      transactions.add(hash);
    }
  }
  return { blocks, transactions, doubled };
}
