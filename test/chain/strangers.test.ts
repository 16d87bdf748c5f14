/** A node on an open network: what strangers may write, over real sockets, and what others see of it. */
import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { StartError } from "../../src/base/errors/start-error.js";
import { genesisOf } from "../helpers/chain/genesis.js";
import { testKey, type TestKey, writeKey } from "../helpers/chain/keys.js";
import { metricsFlags } from "../helpers/process/edge-metrics.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { startMember } from "../helpers/nodes/start-member.js";
import { startTestNode } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { connectTransport } from "../helpers/wire/transports.js";
import { commit, createPublic, signTransaction, signZk } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";

/** Nobody on this machine is exempt. */
const strange = { "rate-limit-exempt": "192.0.2.1", "rate-limit": "0" };

interface Answer {
  readonly errorCode?: string;
  readonly error?: string;
  readonly retryAfter?: number;
  readonly hash?: string;
}

async function submit(port: number, transaction: Transaction, address: string): Promise<Answer> {
  const { body, signature } = transaction;
  const text = JSON.stringify({
    transaction: { body: Buffer.from(body).toString("base64"), signature: Buffer.from(signature).toString("base64") },
  });
  const request = { method: "POST", headers: { "Content-Type": "application/json" }, body: text };
  return JSON.parse((await ask(port, "/chain/transactions", request, address)).text) as Answer;
}

async function statusOf(port: number, transaction: Transaction): Promise<string | undefined> {
  const { status } = await askJson<{ status?: string }>(port, `/chain/transactions/${sha256(transaction.body)}`);
  return status;
}

const program = (key: TestKey, nonce: number, json = "{}", network?: string): Transaction =>
  signTransaction(key, nonce, createPublic(`p${nonce}`, json), network === undefined ? {} : { network });

test("a flood from other addresses, with as many keys as they like, delays nobody beyond the second block", async (t) => {
  const node = await startMember(t, { ...strange, "sender-bytes-per-minute": "0", "sender-programs-per-minute": "0" });
  const document = JSON.stringify("x".repeat(200_000));
  let isOver = false;
  let nonce = 0;
  const refusals = new Set<string | undefined>();
  const flood = async (address: string): Promise<void> => {
    while (!isOver) {
      nonce++;
      const answer = await submit(node.port, program(testKey(100 + (nonce % 100)), nonce, document), address);
      if (answer.hash === undefined) {
        refusals.add(answer.errorCode);
        await sleep(20);
      }
    }
  };
  // More at once than the share of an address holds, which blocks would otherwise empty as fast as one by one fills it.
  const floods = [2, 3, 4].flatMap((last) => Array.from({ length: 18 }, () => flood(`127.0.0.${last}`)));
  const end = async (): Promise<void> => {
    isOver = true;
    await Promise.all(floods);
  };
  t.teardown(end);
  await until(() => refusals.size > 0);
  for (let i = 1; i <= 3; i++) {
    const honest = program(testKey(50), i);
    t.truthy((await submit(node.port, honest, "127.0.0.9")).hash);
    const before = node.chain.head()!.number;
    await until(async () => (await statusOf(node.port, honest)) === "included");
    const { blockNumber } = await askJson<{ blockNumber: string | number }>(
      node.port,
      `/chain/transactions/${sha256(honest.body)}`,
    );
    t.true(Number(blockNumber) <= Number(before) + 2, `block ${blockNumber} after ${before}`);
  }
  await end();
  t.deepEqual([...refusals], ["OVERLOADED"]);
});

test("rates are told with the time to wait, and shown in the metrics", async (t) => {
  const flags = { ...strange, ...metricsFlags, "sender-leaves-per-minute": "2", "sender-programs-per-minute": "2" };
  const node = await startMember(t, flags);
  const leaf = (nonce: number): Transaction =>
    signZk(testKey(50), nonce, commit(`0x${String(nonce).padStart(64, "0")}`));
  t.truthy((await submit(node.port, leaf(1), "127.0.0.2")).hash);
  t.truthy((await submit(node.port, leaf(2), "127.0.0.2")).hash);
  const refused = await submit(node.port, leaf(3), "127.0.0.3");
  t.like(refused, { errorCode: "RATE_LIMITED" });
  t.regex(refused.error!, /Too many new commitments of this sender in a minute; try again in \d+ s\./);
  t.true(refused.retryAfter! > 0 && refused.retryAfter! <= 30);
  for (const key of [1, 2]) {
    t.truthy((await submit(node.port, program(testKey(60 + key), 1), "127.0.0.2")).hash);
  }
  t.regex((await submit(node.port, program(testKey(63), 1), "127.0.0.2")).error!, /of this address/);
  t.truthy((await submit(node.port, program(testKey(63), 1), "127.0.0.4")).hash);
  const { ports } = await askJson<{ ports: Record<string, { actual: number }> }>(node.port, "/health");
  const { text } = await ask(ports["metrics"]!.actual, "/metrics");
  t.regex(text, /^gatehouse_mempool_refused_total\{reason="rate"\} 2$/m);
  t.regex(text, /^gatehouse_mempool_refused_total\{reason="share"\} 0$/m);
  t.regex(text, /^gatehouse_mempool_bytes \d+$/m);
  t.regex(text, /^gatehouse_mempool_largest_origin_ratio 0/m);
});

test("of an address that has written enough, what it announces is refused unread; what may fit is looked at", async (t) => {
  const node = await startMember(t, { ...strange, "sender-bytes-per-minute": "1500000" });
  const documentOf = (bytes: number): string => JSON.stringify("x".repeat(bytes));
  t.truthy((await submit(node.port, program(testKey(70), 1, documentOf(1_000_000)), "127.0.0.1")).hash);
  const noJson = Buffer.alloc(1_400_000, "x");
  for (const [name, path] of [
    ["HTTP/1.1", "/chain/transactions"],
    ["HTTP/1.1", "/gatehouse.chain.v1.ChainService/SubmitTransaction"],
    ["HTTP/2 by prior knowledge", "/chain/transactions"],
  ] as const) {
    const client = connectTransport(name, { port: node.port });
    t.teardown(() => client.close());
    const headers = { "Content-Type": "application/json", "Content-Length": String(noJson.length) };
    const { status, text } = await client.ask(path, { method: "POST", headers, body: noJson });
    t.is(status, 429, text);
    t.regex(text, /Too many bytes of this address in a minute; try again in \d+ s\./);
  }
  t.is((await ask(node.port, "/chain/transactions", { method: "POST", body: noJson }, "127.0.0.3")).status, 400);
  t.truthy((await submit(node.port, program(testKey(71), 1), "127.0.0.1")).hash, "a small one fits");
  const huge = await ask(
    node.port,
    "/chain/transactions",
    { method: "POST", body: Buffer.alloc(3_000_000) },
    "127.0.0.1",
  );
  t.is(huge.status, 413, "what fits nowhere is refused as that");
});

/** A directory of an authority whose genesis names a writer. */
async function prepareListed(t: Teardown) {
  const dir = await temporaryDirectory(t);
  const [authority, ofGenesis, ofFile, stranger] = [testKey(1), testKey(2), testKey(3), testKey(4)];
  const genesis = { ...(JSON.parse(genesisOf(authority)) as object), writers: [ofGenesis.publicKey] };
  const text = JSON.stringify(genesis);
  await writeFile(join(dir, "genesis.json"), text);
  await writeKey(join(dir, "identity.key"), authority);
  await writeFile(join(dir, "writers.json"), JSON.stringify([ofFile.publicKey]));
  return { dir, network: sha256(text), authority, ofGenesis, ofFile, stranger };
}

test("where writers are listed, nobody else's transactions are taken", async (t) => {
  const { dir, network, authority, ofGenesis, ofFile, stranger } = await prepareListed(t);
  const flags = { genesis: "genesis.json", writers: "listed", "writers-file": "writers.json" };
  const node = await startTestNode(t, flags, dir);
  for (const key of [authority, ofGenesis, ofFile]) {
    t.truthy((await submit(node.port, program(key, 1, "{}", network), "127.0.0.1")).hash);
  }
  const refused = await submit(node.port, program(stranger, 1, "{}", network), "127.0.0.1");
  t.like(refused, { errorCode: "PERMISSION_DENIED" });
  t.regex(refused.error!, /listed writers only/);
  // It is this node's rule, and none of the chain: a block with a stranger's transaction is a block.
  await node.stop();
  const open = await startTestNode(t, {}, dir);
  t.truthy((await submit(open.port, program(stranger, 1, "{}", network), "127.0.0.1")).hash);
});

test("a file of writers that cannot be used stops the start", async (t) => {
  const { dir } = await prepareListed(t);
  const flags = { genesis: "genesis.json", writers: "listed", "writers-file": "writers.json" };
  for (const [text, message] of [
    ["[", /writers\.json cannot be read/],
    ['["0x12"]', /writers\.json must hold a JSON array of keys, .*; check entry 0\.$/],
    ["{}", /must hold a JSON array of keys/],
  ] as const) {
    await writeFile(join(dir, "writers.json"), text);
    const error = await t.throwsAsync(startTestNode(t, flags, dir), { instanceOf: StartError });
    t.regex(error.message, message);
  }
});
