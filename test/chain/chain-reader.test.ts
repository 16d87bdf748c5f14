/** What a reader is told of the blocks that somebody else applies. */
import test from "ava";
import { type ChainReader, createChainReader } from "../../src/chain/chain-reader.js";
import { createChainStore } from "../../src/chain/chain-store.js";
import { stateIn } from "../../src/node/chain/transaction-executor.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { openChain } from "../helpers/chain/chain.js";
import { testKey } from "../helpers/chain/keys.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";

const engines = await prepareEngines();

const [authority, alice] = [testKey(1), testKey(2)];

test("it hears of each block before that is the head, and of a leap where many came or the database went back", async (t) => {
  const database = await engines.open(t, "sqlite");
  const chain = await openChain(database, [authority]);
  const store = createChainStore(database, stateIn);
  let nonce = 0;
  const makeBlock = async (): Promise<void> => {
    nonce++;
    await chain.submit(signTransaction(alice, nonce, createPublic(`p${nonce}`, "{}")));
    await chain.produceBlock(authority);
  };
  const heard: string[] = [];
  const numberNow = (): string => String(reader?.head()?.number);
  let reader: ChainReader | undefined = createChainReader({
    store,
    head: (await store.head())!,
    pollIntervalMs: 1,
    onApplied: ({ header, transactions }) =>
      heard.push(`${header.number} with ${transactions.length}, after ${numberNow()}`),
    onReset: () => heard.push(`leap, after ${numberNow()}`),
    onHeadChanged: (isLeap) => heard.push(`${isLeap ? "leapt" : "moved"} to ${numberNow()}`),
    onError: (error) => t.fail(String(error)),
  });
  const reads = async (number: bigint): Promise<void> => await until(() => reader?.head()?.number === number);
  await makeBlock();
  await reads(1n);
  t.deepEqual(heard.splice(0), ["1 with 1, after 0", "moved to 1"]);

  await reader.stop();
  const [first, behind] = [reader.head()!, { pollIntervalMs: 1, onError: (error: unknown) => t.fail(String(error)) }];
  await makeBlock();
  await makeBlock();
  const follow = (head: typeof first): ChainReader =>
    createChainReader({
      ...{ ...behind, store, head },
      onApplied: ({ header }) => heard.push(String(header.number)),
      onReset: () => heard.push("leap"),
      onHeadChanged: () => undefined,
    });
  reader = follow(first);
  await reads(3n);
  t.deepEqual(heard.splice(0), ["2", "3"]);

  await reader.stop();
  for (let i = 0; i < 21; i++) {
    await makeBlock();
  }
  reader = follow(reader.head()!);
  await reads(24n);
  t.deepEqual(heard.splice(0), ["leap"]);

  await database.write.run((sql) => sql("blocks").where("number", 24).delete());
  await reads(23n);
  t.deepEqual(heard.splice(0), ["leap"]);
  await reader.stop();
  reader = follow({ ...reader.head()!, number: 22n, hash: "0xother" });
  await reads(23n);
  t.deepEqual(heard.splice(0), ["leap"], "what it followed was another chain");
  await reader.stop();
});
