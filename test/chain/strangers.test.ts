/** Limits on the writes of unknown clients, over real sockets, and their effect on other clients. */
import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { StartError } from "../../src/base/errors/start-error.js";
import { genesisOf, testKey, writeKey } from "../helpers/chain/keys.js";
import { metricsFlags } from "../helpers/process/prometheus.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { startMember, startTestNode } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { connectTransport } from "../helpers/wire/transports.js";
import { newProgram, post } from "../helpers/chain/submit.js";
import { commit, signZk } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";

/** Flags of a node that exempts no client on this machine. */
const withoutExemption = { "rate-limit-exempt": "192.0.2.1", "rate-limit": "0" };

interface SubmitResponse {
  readonly errorCode?: string;
  readonly error?: string;
  readonly retryAfter?: number;
  readonly hash?: string;
}

async function submit(port: number, transaction: Transaction, address: string): Promise<SubmitResponse> {
  return JSON.parse((await post(port, transaction, address)).text) as SubmitResponse;
}

async function statusOf(port: number, transaction: Transaction): Promise<string | undefined> {
  const { status } = await askJson<{ status?: string }>(port, `/chain/transactions/${sha256(transaction.body)}`);
  return status;
}

test("a flood from other addresses with many keys delays an honest transaction by at most two blocks", async (t) => {
  const flags = { "sender-bytes-per-minute": "0", "sender-programs-per-minute": "0" };
  const node = await startMember(t, { ...withoutExemption, ...flags });
  const document = JSON.stringify("x".repeat(200_000));
  let isOver = false;
  let nonce = 0;
  const errorCodes = new Set<string | undefined>();
  const flood = async (address: string): Promise<void> => {
    while (!isOver) {
      nonce++;
      const response = await submit(node.port, newProgram(testKey(100 + (nonce % 100)), nonce, document), address);
      if (response.hash === undefined) {
        errorCodes.add(response.errorCode);
        await sleep(20);
      }
    }
  };
  // Enough concurrent submissions to use up the quota of an address. Blocks empty it faster than one after the other.
  const floods = [2, 3, 4].flatMap((last) => Array.from({ length: 18 }, () => flood(`127.0.0.${last}`)));
  const stop = async (): Promise<void> => {
    isOver = true;
    await Promise.all(floods);
  };
  t.teardown(stop);
  await until(() => errorCodes.size > 0);
  for (let i = 1; i <= 3; i++) {
    const honest = newProgram(testKey(50), i);
    t.truthy((await submit(node.port, honest, "127.0.0.9")).hash);
    const submittedAt = node.chain.head()!.number;
    await until(async () => (await statusOf(node.port, honest)) === "included");
    const { blockNumber } = await askJson<{ blockNumber: string | number }>(
      node.port,
      `/chain/transactions/${sha256(honest.body)}`,
    );
    t.true(Number(blockNumber) <= Number(submittedAt) + 2, `block ${blockNumber} after ${submittedAt}`);
  }
  await stop();
  t.deepEqual([...errorCodes], ["OVERLOADED"]);
});

test("RATE_LIMITED states the time to wait, and the metrics count refused transactions", async (t) => {
  const flags = {
    ...withoutExemption,
    ...metricsFlags,
    "sender-leaves-per-minute": "2",
    "sender-programs-per-minute": "2",
  };
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
    t.truthy((await submit(node.port, newProgram(testKey(60 + key), 1), "127.0.0.2")).hash);
  }
  t.regex((await submit(node.port, newProgram(testKey(63), 1), "127.0.0.2")).error!, /of this address/);
  t.truthy((await submit(node.port, newProgram(testKey(63), 1), "127.0.0.4")).hash);
  const { ports } = await askJson<{ ports: Record<string, { actual: number }> }>(node.port, "/health");
  const { text } = await ask(ports["metrics"]!.actual, "/metrics");
  t.regex(text, /^gatehouse_mempool_refused_total\{reason="rate"\} 2$/m);
  t.regex(text, /^gatehouse_mempool_refused_total\{reason="share"\} 0$/m);
  t.regex(text, /^gatehouse_mempool_bytes \d+$/m);
  t.regex(text, /^gatehouse_mempool_largest_origin_ratio 0/m);
});

test("rejects a body by its length if its address is above the byte rate; reads it if it may fit", async (t) => {
  const node = await startMember(t, { ...withoutExemption, "sender-bytes-per-minute": "1500000" });
  const documentOf = (bytes: number): string => JSON.stringify("x".repeat(bytes));
  t.truthy((await submit(node.port, newProgram(testKey(70), 1, documentOf(1_000_000)), "127.0.0.1")).hash);
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
  t.is(
    (await ask(node.port, "/chain/transactions", { method: "POST", body: noJson }, { localAddress: "127.0.0.3" }))
      .status,
    400,
  );
  t.truthy((await submit(node.port, newProgram(testKey(71), 1), "127.0.0.1")).hash, "a small body fits");
  const huge = await ask(node.port, "/chain/transactions", { method: "POST", body: Buffer.alloc(3_000_000) });
  t.is(huge.status, 413, "the size limit takes precedence over the rate");
});

/** Creates the data directory of an authority, with one writer in the genesis and one in the writers file. */
async function prepareListed(t: Teardown) {
  const dir = await temporaryDirectory(t);
  const [authority, ofGenesis, ofFile, unlisted] = [testKey(1), testKey(2), testKey(3), testKey(4)];
  const genesis = { ...(JSON.parse(genesisOf(authority)) as object), writers: [ofGenesis.publicKey] };
  const text = JSON.stringify(genesis);
  await writeFile(join(dir, "genesis.json"), text);
  await writeKey(join(dir, "identity.key"), authority);
  await writeFile(join(dir, "writers.json"), JSON.stringify([ofFile.publicKey]));
  return { dir, network: sha256(text), authority, ofGenesis, ofFile, unlisted };
}

test("with --writers listed, rejects transactions of unlisted senders", async (t) => {
  const { dir, network, authority, ofGenesis, ofFile, unlisted } = await prepareListed(t);
  const flags = { genesis: "genesis.json", writers: "listed", "writers-file": "writers.json" };
  const node = await startTestNode(t, flags, dir);
  for (const key of [authority, ofGenesis, ofFile]) {
    t.truthy((await submit(node.port, newProgram(key, 1, "{}", { network }), "127.0.0.1")).hash);
  }
  const refused = await submit(node.port, newProgram(unlisted, 1, "{}", { network }), "127.0.0.1");
  t.like(refused, { errorCode: "PERMISSION_DENIED" });
  t.regex(refused.error!, /listed writers only/);
  // The rule belongs to this node, not to the chain: blocks may contain transactions of unlisted senders.
  await node.stop();
  const open = await startTestNode(t, {}, dir);
  t.truthy((await submit(open.port, newProgram(unlisted, 1, "{}", { network }), "127.0.0.1")).hash);
});

test("the node does not start with an invalid writers file", async (t) => {
  const { dir } = await prepareListed(t);
  const flags = { genesis: "genesis.json", writers: "listed", "writers-file": "writers.json" };
  for (const [text, message] of [
    ["[", /writers\.json is not JSON at line 1, column 2: the text ends\.$/],
    ['["0x12"]', /writers\.json must hold a JSON array of keys, .*; check entry 0\.$/],
    ["{}", /must hold a JSON array of keys/],
  ] as const) {
    await writeFile(join(dir, "writers.json"), text);
    const error = await t.throwsAsync(startTestNode(t, flags, dir), { instanceOf: StartError });
    t.regex(error.message, message);
  }
});
