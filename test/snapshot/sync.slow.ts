/** Nodes that sync from a snapshot: their data equals that of a node that applied every block. */
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Block } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService, ConsensusService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import type { Engine } from "../../src/db/queries/dialects.js";
import { openDatabase } from "../../src/db/open.js";
import { pageToken } from "../helpers/nodes/cli-users.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { testKey } from "../helpers/chain/keys.js";
import {
  endpointOf,
  headOf,
  makeBlocks,
  networkOf,
  peersOf,
  startMemberOf,
  startProcessOf,
} from "../helpers/nodes/network.js";
import { listen } from "../helpers/wire/events.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { runCli } from "../helpers/nodes/run-cli.js";
import { makeRichChain, type RichChain } from "../helpers/chain/rich-chain.js";
import type { TestNode } from "../helpers/nodes/start-node.js";
import { readState } from "../helpers/chain/state-digest.js";
import { fileTeardown, type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

const engines = await prepareEngines();

const authority = testKey(1);
const { genesis } = networkOf(authority);
const shared = fileTeardown();

let chain: RichChain;
let source: TestNode;
/** The number of the block of the snapshot. */
const snapshotBlock = 30;
const total = 36;

const apply = async (node: TestNode, blocks: readonly Block[]): Promise<void> => {
  const consensus = createClient(ConsensusService, node.control);
  for (const block of blocks) {
    await consensus.applyBlock({ block });
  }
};

const snapshotsOf = async ({ dir }: TestNode): Promise<string[]> =>
  existsSync(join(dir, "snapshots")) ? await readdir(join(dir, "snapshots")) : [];

test.before(async () => {
  chain = await makeRichChain(join(await temporaryDirectory(shared), "source.sqlite"), authority, total);
  const flags = { "snapshot-every": "30" };
  source = await startMemberOf(shared, { key: testKey(2), genesis, flags });
  await apply(source, chain.blocks.slice(0, snapshotBlock));
  await until(async () => (await snapshotsOf(source)).some((name) => name.startsWith(`${snapshotBlock}-`)));
  await apply(source, chain.blocks.slice(snapshotBlock, total - 3));
});

/** The content of a database, as text. */
async function stateOf(url: string): Promise<string[]> {
  const database = await openDatabase(url);
  try {
    const contents = [...(await readState(database, chain.hostile))];
    for (const query of [
      "SELECT address FROM programs WHERE id > 0 ORDER BY id",
      "SELECT address, field, position, items, size_bytes, text FROM program_chunks ORDER BY 1, 2, 3",
      "SELECT address, position, name_json, type, items, text_before, value FROM program_fields ORDER BY 1, 2",
      "SELECT identity, nonce FROM senders ORDER BY 1",
      "SELECT number, hash, timestamp_ms FROM blocks ORDER BY 1",
      "SELECT block_number, root, leaf_count, timestamp_ms FROM merkle_roots ORDER BY 1",
      "SELECT hash, block_number, transaction_hash FROM nullifiers ORDER BY 1",
    ]) {
      contents.push(JSON.stringify(await database.read.rows((sql) => sql.raw(query))));
    }
    return contents;
  } finally {
    await database.close();
  }
}

/** Starts a node that syncs from a snapshot of the source. */
async function startSyncing(
  t: Teardown,
  engine: Engine,
  url: string,
  flags: Record<string, string> = {},
): Promise<TestNode> {
  return await startMemberOf(t, {
    key: testKey(engine === "sqlite" ? 3 : 4),
    genesis,
    seeds: [endpointOf(source)],
    flags: { sync: "snapshot", database: url, "snapshot-every": "6", ...flags },
  });
}

/** Returns true if a node has the latest block of the source. */
const hasSynced = async (node: TestNode): Promise<boolean> =>
  (await headOf(node)).number === (await headOf(source)).number;

for (const engine of engines.names) {
  test.serial(`${engine}: a node synced from a snapshot has the data of a node that applied every block`, async (t) => {
    const url = await engines.createUrl(t, engine);
    const node = await startSyncing(t, engine, url);
    await until(() => hasSynced(node).catch(() => false));
    t.deepEqual(await stateOf(url), await stateOf(`sqlite:${source.databaseFile}`));
    const { code, stdout } = await runCli(["verify-data", "--database", url, "--json"]);
    t.is(code, 0, stdout);
  });
}

test.serial("every protocol reports pruned blocks as PRUNED", async (t) => {
  const node = await startSyncing(t, "sqlite", await engines.createUrl(t, "sqlite"));
  await until(() => hasSynced(node).catch(() => false));
  t.is((await askJson<{ lowestBlock: number }>(node.port, "/chain/head")).lowestBlock, snapshotBlock + 1);
  t.is((await askJson<{ lowestBlock: number }>(source.port, "/chain/head")).lowestBlock, 1);
  const { hash } = await askJson<{ hash: string }>(source.port, `/chain/blocks/${snapshotBlock}`);
  for (const path of [`/chain/blocks/${snapshotBlock}`, `/chain/blocks/hash/${hash}`]) {
    const pruned = await ask(node.port, path);
    t.is(pruned.status, 410);
    t.like(JSON.parse(pruned.text), { errorCode: "PRUNED" });
    t.regex(pruned.text, /the oldest complete block here is 31/);
  }
  t.is((await ask(node.port, `/chain/blocks/${snapshotBlock + 1}`)).status, 200);
  t.is((await ask(node.port, "/chain/blocks/1000")).status, 404);

  const call = { jsonrpc: "2.0", id: 1, method: "chain.getBlock", params: { number: "3" } };
  const headers = { "content-type": "application/json" };
  const { text } = await ask(node.port, "/", { method: "POST", headers, body: JSON.stringify(call) });
  t.regex(text, /"errorCode":"PRUNED"|"reason":"PRUNED"/);

  const grpc = createClient(ChainService, createGrpcTransport({ baseUrl: `http://127.0.0.1:${node.port}` }));
  const error = await t.throwsAsync(grpc.getBlock({ number: 3n }), { instanceOf: ConnectError });
  t.is(error.code, Code.OutOfRange);
  const stream = grpc.listBlocks({ fromNumber: 1n })[Symbol.asyncIterator]();
  const streamError = await t.throwsAsync(stream.next(), { instanceOf: ConnectError });
  t.is(streamError.code, Code.OutOfRange);

  const { transactionHashes } = await askJson<{ transactionHashes: string[] }>(source.port, "/chain/blocks/2");
  const unknown = await ask(node.port, `/chain/transactions/${transactionHashes[0]}`);
  t.is(unknown.status, 404);
  t.regex(unknown.text, /blocks from 31 on/);
});

test.serial("a node with --sync blocks ignores peers without all blocks", async (t) => {
  const partial = await startSyncing(t, "sqlite", await engines.createUrl(t, "sqlite"));
  await until(() => hasSynced(partial).catch(() => false));
  const seeds = [endpointOf(partial)];
  const node = await startMemberOf(t, { key: testKey(5), genesis, seeds, flags: { sync: "blocks" } });
  await until(async () => (await peersOf(node))[0]?.sync.block === total - 3);
  t.is((await headOf(node)).number, 0);
  await createClient(ControlService, node.control).addPeer({ endpoint: endpointOf(source) });
  await until(() => hasSynced(node));
  t.is((await askJson<{ lowestBlock: number }>(node.port, "/chain/head")).lowestBlock, 1);
});

test.serial("--retain-blocks removes old transactions, and peers request only retained blocks", async (t) => {
  const blocks = await makeBlocks(t, authority, 300);
  const full = await startMemberOf(t, { key: testKey(7), genesis });
  await apply(full, blocks.slice(0, 299));
  const pruned = await startMemberOf(t, {
    ...{ key: testKey(8), genesis, seeds: [endpointOf(full)] },
    flags: { "retain-blocks": "256", "snapshot-every": "0" },
  });
  const lowest = async (): Promise<number> =>
    (await askJson<{ lowestBlock: number }>(pruned.port, "/chain/head")).lowestBlock;
  // The node retains at least 256 blocks, and at most 16 more.
  await until(async () => (await headOf(pruned)).number === 299 && (await lowest()) === 33);
  await apply(pruned, blocks.slice(299));
  t.is(await lowest(), 33);
  const database = await openDatabase(`sqlite:${pruned.databaseFile}`);
  t.teardown(() => database.close());
  const rows = await database.read.rows<{ first: number; rows: number }>((sql) =>
    sql("transactions").min({ first: "block_number" }).count({ rows: "*" }),
  );
  t.deepEqual(rows, [{ first: 33, rows: 268 }]);
  t.is((await ask(pruned.port, "/chain/blocks/32")).status, 410);
  t.is((await ask(pruned.port, "/chain/blocks/33")).status, 200);
  for (const query of ["?fromBlock=1", "?from=31", "?from=32.1"]) {
    const { status, text } = await ask(pruned.port, `/events${query}`);
    t.is(status, 410, query);
    t.regex(text, /"PRUNED"/);
  }
  const listener = await listen(pruned.port, "?from=32&kinds=block");
  t.teardown(() => listener.end());
  t.is((await listener.takeTo(300)).length, 268);
  const list = async (...args: readonly string[]): Promise<string> =>
    (await runCli([...args, "--limit", "200", "--node", pruned.rpcUrl])).stdout;
  const next = async (...args: readonly string[]): Promise<string> =>
    await list(...args, "--page-token", pageToken(await list(...args)) ?? "none");
  t.true((await next("tx", "list")).endsWith("\n\nThis node does not list blocks before 33.\n"));
  t.regex(await next("block", "list"), /^33 .*Z {2}1 .*\n32 .*Z {2}not stored {2}0x/m);
  const { code, stdout } = await runCli(["verify-data", "--database", `sqlite:${pruned.databaseFile}`, "--json"]);
  t.is(code, 0, stdout);
  // A node with block 32 can sync from the pruned node.
  const late = await startMemberOf(t, { key: testKey(9), genesis, flags: { sync: "blocks" } });
  await apply(late, blocks.slice(0, 32));
  const { addPeer } = createClient(ControlService, late.control);
  await addPeer({ endpoint: endpointOf(pruned) });
  await until(async () => (await headOf(late)).number === 300);
});

for (const engine of engines.names) {
  test.serial(`${engine}: a snapshot sync resumes after kill -9 at any time`, async (t) => {
    const dir = await temporaryDirectory(t);
    const database = await engines.createUrl(t, engine);
    const start = async () =>
      await startProcessOf(t, {
        ...{ dir, key: testKey(6), genesis, seeds: [endpointOf(source)] },
        flags: { sync: "snapshot", "loop-interval": "0.05", database },
      });
    for (const ms of [1, 40, 80, 120, 160, 200]) {
      const { child, ended } = await start();
      await sleep(ms);
      child.kill("SIGKILL");
      await ended;
    }
    const node = await start();
    await until(async () => (await headOf(node).catch(() => undefined))?.number === total - 3);
    node.child.kill("SIGTERM");
    await node.ended;
    t.deepEqual(await stateOf(database), await stateOf(`sqlite:${source.databaseFile}`));
  });
}

test.serial("nodes synced from a snapshot apply new blocks like nodes that applied every block", async (t) => {
  const urls = await Promise.all(engines.names.map((engine) => engines.createUrl(t, engine)));
  const nodes = await Promise.all(engines.names.map((engine, i) => startSyncing(t, engine, urls[i]!)));
  await until(async () => (await Promise.all(nodes.map(hasSynced))).every(Boolean));
  await apply(source, chain.blocks.slice(total - 3));
  await until(async () => (await Promise.all(nodes.map(hasSynced))).every(Boolean));
  const expected = await stateOf(`sqlite:${source.databaseFile}`);
  for (const url of urls) {
    t.deepEqual(await stateOf(url), expected);
  }
  // Snapshots of one block are equal on all nodes.
  const names = async (node: TestNode): Promise<string[]> =>
    (await snapshotsOf(node)).filter((name) => name.startsWith(`${total}-`));
  await until(async () => (await Promise.all(nodes.map(names))).every(({ length }) => length === 1));
  t.is(new Set((await Promise.all(nodes.map(names))).flat()).size, 1);
});
