/** Blocks of the maximum size: responses in every protocol, and the memory of a node that serves them. */
import { toBinary } from "@bufbuild/protobuf";
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
import { genesisOf, testKey, writeKey } from "../helpers/chain/keys.js";
import { connectGrpc } from "../helpers/wire/grpc-client.js";
import { ask, askJson, type PlainResponse } from "../helpers/wire/plain-client.js";
import { connectEach, readFailure, type RpcClient } from "../helpers/wire/rpc-clients.js";
import { anyRoots, insertBlocks, seedDatabase } from "../helpers/chain/seed.js";
import { startNodeProcess } from "../helpers/nodes/run-cli.js";
import { startTestNode } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { createPublic, signTransaction, rulesOf, testNetwork } from "../helpers/chain/transactions.js";

const [authority, alice] = [testKey(1), testKey(2)];
const chain = ChainService.method;

let nonce = 0;

/** Creates transactions with documents of this size in bytes. */
const documents = (count: number, bytes: number): Transaction[] =>
  Array.from({ length: count }, () =>
    signTransaction(alice, ++nonce, createPublic("large", JSON.stringify("x".repeat(bytes)))),
  );

/** Creates the data directory of a node that has these blocks, and is no authority. */
async function directoryWith(t: Teardown, blocks: Iterable<readonly Transaction[]>): Promise<string> {
  const dir = await temporaryDirectory(t);
  await seedDatabase(dir, (database) => insertBlocks(database, authority, blocks));
  await writeFile(join(dir, "genesis.json"), genesisOf(authority));
  await writeKey(join(dir, "identity.key"), alice);
  return dir;
}

interface NodeCallResponse {
  readonly result: number;
  readonly response: readonly { readonly header: { readonly number: number } }[] & { readonly error?: string };
}

const nodeCall = (port: number, message: string, data: object): Promise<PlainResponse> =>
  ask(port, "/", { method: "POST", body: JSON.stringify({ method: "nodeCall", params: [{ message, data }] }) });

/** Calls getBlocks. Returns the numbers of the blocks in the response, and its size in bytes. */
async function getBlocks(port: number, data: object): Promise<{ numbers: number[]; bytes: number }> {
  const { text } = await nodeCall(port, "getBlocks", data);
  const { response } = JSON.parse(text) as NodeCallResponse;
  return { numbers: response.map(({ header }) => header.number), bytes: Buffer.byteLength(text) };
}

/** Returns all blocks of a stream. */
async function listBlocks(client: RpcClient, fromNumber: bigint): Promise<Block[]> {
  const blocks: Block[] = [];
  for await (const message of client.stream(chain.listBlocks, { fromNumber }, new AbortController().signal)) {
    blocks.push((message as unknown as { block: Block }).block);
  }
  return blocks;
}

test("getBlocks limits the size of its response; repeated calls return all blocks", async (t) => {
  const mixed = [20, 700_000, 1_000_000, 600_000, 20, 20, 1_000_000, 1_000_000, 1_000_000, 20].map((bytes) =>
    documents(1, bytes),
  );
  const dir = await directoryWith(t, [...mixed, documents(3, 1_048_000), documents(1, 20)]);
  const { port } = await startTestNode(t, { genesis: "genesis.json" }, dir);
  const responses: number[][] = [];
  // Latest first, so the next list starts below the last block of this one.
  for (let start = 12; start > 0 && responses.length < 12; start = responses.at(-1)!.at(-1)! - 1) {
    const { numbers, bytes } = await getBlocks(port, { start, limit: 50 });
    t.true(bytes <= maxResponseBytes || numbers.length === 1, `${bytes} bytes for ${numbers.join()}`);
    responses.push(numbers);
  }
  t.deepEqual(responses, [[12], [11], [10, 9, 8, 7, 6, 5], [4, 3, 2, 1]]);
  t.deepEqual((await getBlocks(port, { start: 3, limit: 2 })).numbers, [3, 2]);
  t.deepEqual((await getBlocks(port, { start: 13, limit: 2 })).numbers, [12]);

  t.deepEqual((await getBlocks(port, { start: "latest" })).numbers, [12]);
  t.deepEqual((await getBlocks(port, { start: 0, limit: 1 })).numbers, []);
});

test("a block above the response limit gets ANSWER_TOO_LARGE in each protocol; ListBlocks streams it", async (t) => {
  const dir = await directoryWith(t, [documents(1, 20), documents(2_500, 1_384), documents(1, 20)]);
  const { port } = await startTestNode(t, { genesis: "genesis.json" }, dir);
  const clients = connectEach(port);
  t.teardown(() => Object.values(clients).forEach((client) => client.close()));
  const { hash } = await askJson<{ hash: string }>(port, "/chain/blocks/1");
  t.truthy(hash);
  const grpcClient = connectGrpc(port);
  t.teardown(() => grpcClient.close());
  const counts: number[] = [];
  for await (const { block } of grpcClient.stream(chain.listBlocks, { fromNumber: 1n })) {
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

test("the largest block that a node builds fits a response in every protocol", async (t) => {
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
      const response = (await client.call(chain.getBlock, { number })) as unknown as typeof plain & { block: Block };
      t.deepEqual(response.transactionHashes, plain.transactionHashes, protocol);
      t.is(response.hash, plain.hash, protocol);
      t.is(response.block.transactions.length, count, protocol);
    }
  }
});

test("verifyBlock rejects a block above the size limit, and accepts one of exactly that size", async (t) => {
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

// Serial, because the node buffers the responses until this process reads them. All of them together fit its heap.
test.serial("a node with a heap of 128 MB survives concurrent requests for many large blocks", async (t) => {
  const large = Array.from({ length: 10 }, () => documents(3, 1_048_000));
  const medium = Array.from({ length: 40 }, () => documents(1, 300_000));
  const dir = await directoryWith(t, [...large, ...medium]);
  const limited = ["env", "NODE_OPTIONS=--max-old-space-size=128"];
  const node = await startNodeProcess(t, dir, ["--genesis", join(dir, "genesis.json")], limited);
  const batch = Array.from({ length: 100 }, (_, id) => ({ jsonrpc: "2.0", id, method: "chain.getBlock", params: [1] }));
  const responses = await Promise.all([
    ...Array.from({ length: 12 }, (_, i) => nodeCall(node.port, "getBlocks", { start: i % 4 === 0 ? 1 : 11 })),
    ...Array.from({ length: 4 }, () => ask(node.port, "/", { method: "POST", body: JSON.stringify(batch) })),
  ]);
  t.true(responses.every(({ status, text }) => status === 200 && text.length < 1.4 * maxResponseBytes));
  t.is((await ask(node.port, "/health")).status, 200);
});
