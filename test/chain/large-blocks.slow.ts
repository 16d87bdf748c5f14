/** Blocks as large as they may be: what a node answers of them, by every protocol, and what it takes while it does. */
import { toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Block, BlockSchema, type Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { maxResponseBytes } from "../../src/base/limits/response-limits.js";
import {
  encodedBlockBytes,
  maxBlockBytes,
  verifyBlock,
  verifyTransaction,
  signBlock,
} from "../../src/chain/transactions/transaction.js";
import { genesisOf } from "../helpers/chain/genesis.js";
import { callStream } from "../helpers/wire/grpc-client.js";
import { testKey, writeKey } from "../helpers/chain/keys.js";
import { ask, askJson, type PlainResponse } from "../helpers/wire/plain-client.js";
import { connectEach, readFailure, type RpcClient } from "../helpers/wire/rpc-clients.js";
import { anyRoots, insertBlocks, seedDatabase } from "../helpers/chain/seed.js";
import { startNodeProcess } from "../helpers/nodes/start-cli.js";
import { startTestNode } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { createPublic, signTransaction, rulesOf, testNetwork } from "../helpers/chain/transactions.js";

const [authority, alice] = [testKey(1), testKey(2)];
const chain = ChainService.method;

let nonce = 0;

/** Transactions with documents of so many bytes. */
const documents = (count: number, bytes: number): Transaction[] =>
  Array.from({ length: count }, () =>
    signTransaction(alice, ++nonce, createPublic("large", JSON.stringify("x".repeat(bytes)))),
  );

/** The directory of a node with these blocks, which waits for other blocks from outside. */
async function directoryWith(t: Teardown, blocks: Iterable<readonly Transaction[]>): Promise<string> {
  const dir = await temporaryDirectory(t);
  await seedDatabase(dir, (database) => insertBlocks(database, authority, blocks));
  await writeFile(join(dir, "genesis.json"), genesisOf(authority));
  await writeKey(join(dir, "identity.key"), alice);
  return dir;
}

interface NodeCallAnswer {
  readonly result: number;
  readonly response: readonly { readonly header: { readonly number: number } }[] & { readonly error?: string };
}

const nodeCall = (port: number, message: string, data: object): Promise<PlainResponse> =>
  ask(port, "/", { method: "POST", body: JSON.stringify({ method: "nodeCall", params: [{ message, data }] }) });

/** Numbers of the blocks that getBlocks gives, and how long its answer was. */
async function getBlocks(port: number, data: object): Promise<{ numbers: number[]; bytes: number }> {
  const { text } = await nodeCall(port, "getBlocks", data);
  const { response } = JSON.parse(text) as NodeCallAnswer;
  return { numbers: response.map(({ header }) => header.number), bytes: Buffer.byteLength(text) };
}

/** The blocks of a stream. */
async function listBlocks(client: RpcClient, fromNumber: bigint): Promise<Block[]> {
  const blocks: Block[] = [];
  for await (const message of client.stream(chain.listBlocks, { fromNumber }, new AbortController().signal)) {
    blocks.push((message as unknown as { block: Block }).block);
  }
  return blocks;
}

test("getBlocks ends when its answer is as long as one may be; asked again from there, it gives all blocks", async (t) => {
  const mixed = [20, 700_000, 1_000_000, 600_000, 20, 20, 1_000_000, 1_000_000, 1_000_000, 20].map((bytes) =>
    documents(1, bytes),
  );
  const dir = await directoryWith(t, [...mixed, documents(3, 1_048_000), documents(1, 20)]);
  const { port } = await startTestNode(t, { genesis: "genesis.json" }, dir);
  const answers: number[][] = [];
  for (let start = 1; start <= 12; start = answers.at(-1)!.at(-1)! + 1) {
    const { numbers, bytes } = await getBlocks(port, { start, limit: 50 });
    t.true(bytes <= maxResponseBytes || numbers.length === 1, `${bytes} bytes for ${numbers.join()}`);
    answers.push(numbers);
  }
  t.deepEqual(answers, [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10], [11], [12]]);
  t.deepEqual((await getBlocks(port, { start: 3, limit: 2 })).numbers, [3, 4]);
  t.deepEqual((await getBlocks(port, { start: 13, limit: 2 })).numbers, []);
  t.deepEqual((await getBlocks(port, { start: 1e300, limit: 2 })).numbers, []);

  // Of the newest the last ones are given; those before them are asked for by their numbers.
  t.deepEqual((await getBlocks(port, { start: "latest" })).numbers, [12]);
  t.deepEqual((await getBlocks(port, { start: 0, limit: 1 })).numbers, [12]);
});

test("a block that no answer holds is refused, with the reason; ListBlocks gives it to any client", async (t) => {
  const dir = await directoryWith(t, [documents(1, 20), documents(2_500, 1_384), documents(1, 20)]);
  const { port } = await startTestNode(t, { genesis: "genesis.json" }, dir);
  const clients = connectEach(port);
  t.teardown(() => Object.values(clients).forEach((client) => client.close()));
  const { hash } = await askJson<{ hash: string }>(port, "/chain/blocks/1");
  t.truthy(hash);
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.teardown(() => client.close());
  const counts: number[] = [];
  for await (const { block } of callStream(client, chain.listBlocks, { fromNumber: 1n })) {
    counts.push(block!.transactions.length);
  }
  t.deepEqual(counts, [1, 2_500, 1]);
  let hashOfLarge = "";
  for (const [protocol, client] of Object.entries(clients)) {
    if (protocol !== "gRPC") {
      const blocks = await listBlocks(client, 1n);
      t.deepEqual(
        blocks.map(({ transactions }) => transactions.length),
        [1, 2_500, 1],
        protocol,
      );
      const bytes = toBinary(BlockSchema, blocks[1]!).length;
      t.true(bytes > 0.97 * maxBlockBytes && bytes <= maxBlockBytes, String(bytes));
      hashOfLarge = (await verifyBlock(blocks[1]!, rulesOf())).hash;
    }
  }
  for (const [protocol, client] of Object.entries(clients)) {
    for (const call of [
      client.call(chain.getBlock, { number: 2n }),
      client.call(chain.getBlockByHash, { hash: hashOfLarge }),
    ]) {
      t.like(readFailure(await t.throwsAsync(call)), { code: 8, reason: "ANSWER_TOO_LARGE" }, protocol);
    }
  }
  for (const path of ["/chain/blocks/2", `/chain/blocks/hash/${hashOfLarge}`]) {
    const { status, text } = await ask(port, path);
    t.is(status, 413);
    t.like(JSON.parse(text), {
      errorCode: "ANSWER_TOO_LARGE",
      error: "Block 2 is larger than one response can be; use gatehouse.chain.v1.ChainService/ListBlocks.",
    });
  }
  const request = { jsonrpc: "2.0", id: 1, method: "chain.getBlock", params: [2] };
  const { text } = await ask(port, "/", { method: "POST", body: JSON.stringify(request) });
  t.like(JSON.parse(text), { error: { code: -32000, data: { reason: "ANSWER_TOO_LARGE" } } });
  t.deepEqual((await getBlocks(port, { start: 1 })).numbers, [1]);
  t.like(JSON.parse((await nodeCall(port, "getBlocks", { start: 2 })).text), { result: 413 });
  t.deepEqual((await getBlocks(port, { start: 3 })).numbers, [3]);
});

test("the largest block that a node makes fits an answer, in every protocol", async (t) => {
  const dir = await directoryWith(t, [documents(3, 1_048_000), documents(1_000, 2_900)]);
  const { port } = await startTestNode(t, { genesis: "genesis.json" }, dir);
  const clients = connectEach(port);
  t.teardown(() => Object.values(clients).forEach((client) => client.close()));
  for (const [number, count] of [
    [1n, 3],
    [2n, 1_000],
  ] as const) {
    const plain = await askJson<{ hash: string; transactionHashes: string[] }>(port, `/chain/blocks/${number}`);
    t.is(plain.transactionHashes.length, count);
    for (const [protocol, client] of Object.entries(clients)) {
      const answer = (await client.call(chain.getBlock, { number })) as unknown as typeof plain & { block: Block };
      t.deepEqual(answer.transactionHashes, plain.transactionHashes, protocol);
      t.is(answer.hash, plain.hash, protocol);
      t.is(answer.block.transactions.length, count, protocol);
    }
  }
});

test("a block that is larger than a message may be is none", async (t) => {
  const header = {
    number: 1n,
    previousHash: "0x",
    timestampMs: 1n,
    proposer: authority.publicKey,
    genesisHash: testNetwork,
    ...anyRoots,
  };
  const blockOf = (transactions: readonly Transaction[]): Block =>
    signBlock(
      header,
      transactions.map((one) => verifyTransaction(one, rulesOf())),
      (bytes) => authority.sign(bytes),
    ).signed;
  for (const transactions of [
    [],
    documents(1, 1),
    documents(3, 120),
    documents(2, 16_300),
    documents(1, 70_000),
    [...documents(1, 1_000_000), ...documents(1, 100_000)],
  ]) {
    const block = blockOf(transactions);
    t.is(encodedBlockBytes(block), toBinary(BlockSchema, block).length);
    await t.notThrowsAsync(verifyBlock(block, rulesOf()));
  }
  const almost = blockOf(documents(5, 830_000));
  t.is(encodedBlockBytes(almost), toBinary(BlockSchema, almost).length);
  const missing = maxBlockBytes - encodedBlockBytes(almost);
  const [first, ...others] = documents(5, 830_000);
  const exact = blockOf([...documents(1, 830_000 + missing), first!, ...others.slice(1)]);
  t.is(toBinary(BlockSchema, exact).length, maxBlockBytes);
  await t.notThrowsAsync(verifyBlock(exact, rulesOf()));
  const larger = blockOf([...documents(1, 830_000 + missing + 1), first!, ...others.slice(1)]);
  await t.throwsAsync(verifyBlock(larger, rulesOf()), {
    message: `A block must not be larger than ${maxBlockBytes} bytes.`,
  });
});

// By itself: answers wait in the node until this process reads them. All of them at once are less than its heap.
test.serial("a node with a heap of 128 MB gives anybody large blocks by the dozen, and lives", async (t) => {
  const large = Array.from({ length: 10 }, () => documents(3, 1_048_000));
  const middling = Array.from({ length: 40 }, () => documents(1, 300_000));
  const dir = await directoryWith(t, [...large, ...middling]);
  const limited = ["env", "NODE_OPTIONS=--max-old-space-size=128"];
  const node = await startNodeProcess(t, dir, ["--genesis", join(dir, "genesis.json")], limited);
  const batch = Array.from({ length: 100 }, (_, id) => ({ jsonrpc: "2.0", id, method: "chain.getBlock", params: [1] }));
  const answers = await Promise.all([
    ...Array.from({ length: 12 }, (_, i) => nodeCall(node.port, "getBlocks", { start: i % 4 === 0 ? 1 : 11 })),
    ...Array.from({ length: 4 }, () => ask(node.port, "/", { method: "POST", body: JSON.stringify(batch) })),
  ]);
  t.true(answers.every(({ status, text }) => status === 200 && text.length < 1.4 * maxResponseBytes));
  t.is((await ask(node.port, "/health")).status, 200);
});
