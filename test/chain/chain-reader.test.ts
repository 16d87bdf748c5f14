/** Notifications of a read-only chain about the blocks that another node applies. */
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

test("reports each block before it becomes the head, or a reset after many blocks or a changed chain", async (t) => {
  const database = await engines.open(t, "sqlite");
  const chain = await openChain(database, [authority]);
  const store = createChainStore(database, stateIn);
  let nonce = 0;
  const produceBlock = async (): Promise<void> => {
    nonce++;
    await chain.submit(signTransaction(alice, nonce, createPublic(`p${nonce}`, "{}")));
    await chain.produceBlock(authority);
  };
  const calls: string[] = [];
  const headNumber = (): string => String(reader?.head()?.number);
  let reader: ChainReader | undefined = createChainReader({
    store,
    head: (await store.head())!,
    pollIntervalMs: 1,
    onApplied: ({ header, transactions }) =>
      calls.push(`${header.number} with ${transactions.length}, after ${headNumber()}`),
    onReset: () => calls.push(`reset, after ${headNumber()}`),
    onHeadChanged: (isReset) => calls.push(`${isReset ? "reset" : "moved"} to ${headNumber()}`),
    onError: (error) => t.fail(String(error)),
  });
  const untilHead = async (number: bigint): Promise<void> => await until(() => reader?.head()?.number === number);
  await produceBlock();
  await untilHead(1n);
  t.deepEqual(calls.splice(0), ["1 with 1, after 0", "moved to 1"]);

  await reader.stop();
  const first = reader.head()!;
  await produceBlock();
  await produceBlock();
  const follow = (head: typeof first): ChainReader =>
    createChainReader({
      ...{ store, head, pollIntervalMs: 1 },
      onApplied: ({ header }) => calls.push(String(header.number)),
      onReset: () => calls.push("reset"),
      onHeadChanged: () => undefined,
      onError: (error) => t.fail(String(error)),
    });
  reader = follow(first);
  await untilHead(3n);
  t.deepEqual(calls.splice(0), ["2", "3"]);

  await reader.stop();
  for (let i = 0; i < 21; i++) {
    await produceBlock();
  }
  reader = follow(reader.head()!);
  await untilHead(24n);
  t.deepEqual(calls.splice(0), ["reset"]);

  await database.write.run((sql) => sql("blocks").where("number", 24).delete());
  await untilHead(23n);
  t.deepEqual(calls.splice(0), ["reset"]);
  await reader.stop();
  reader = follow({ ...reader.head()!, number: 22n, hash: "0xother" });
  await untilHead(23n);
  t.deepEqual(calls.splice(0), ["reset"], "the earlier head belonged to another chain");
  await reader.stop();
});
