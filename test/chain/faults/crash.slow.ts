/** Kills and locked database files during block production: no partial block, and no lost transaction. */
import test, { type ExecutionContext } from "ava";
import knex from "knex";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { decodeBlock } from "../../../src/chain/transactions/transaction.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { mempoolSuffix, openDatabase } from "../../../src/db/open.js";
import { authorityDirectory, startTestNode } from "../../helpers/nodes/start-node.js";
import { areIncluded, chainClient, include, newProgram, post } from "../../helpers/chain/submit.js";
import { testKey } from "../../helpers/chain/keys.js";
import { readFailure } from "../../helpers/wire/rpc-clients.js";
import { ask, askJson } from "../../helpers/wire/plain-client.js";
import { startNodeProcess } from "../../helpers/nodes/run-cli.js";
import { until } from "../../helpers/nodes/until.js";

const [authority, alice] = [testKey(1), testKey(2)];

test("after repeated kills, all blocks are complete and have every transaction reported as included", async (t) => {
  const dir = await authorityDirectory(t, authority);
  const reported = new Set<string>();
  let nonce = 0;
  for (let round = 0; round < 6; round++) {
    const node = await startNodeProcess(t, dir, ["--genesis", join(dir, "genesis.json")]);
    const client = chainClient(node);
    t.true(await areIncluded(client, ...reported));
    const submitBatch = async (): Promise<string[]> => {
      const json = `{"a":"${"x".repeat(2_000)}","n":1}`;
      const batch = Array.from({ length: 20 }, () => newProgram(alice, ++nonce, json));
      await Promise.all(batch.map((transaction) => client.submitTransaction({ transaction })));
      return batch.map(({ body }) => sha256(body));
    };
    const enough = reported.size + 20;
    const submitted: string[] = [];
    while (reported.size < enough) {
      submitted.push(...(await submitBatch()));
      for (const hash of submitted.slice(-60)) {
        if (await areIncluded(client, hash)) {
          reported.add(hash);
        }
      }
    }
    // A block is produced every 250 ms. The delay differs in each round, so the kill hits a different stage.
    const unfinished = submitBatch().catch(() => []);
    await sleep(45 * round);
    node.child.kill("SIGKILL");
    await Promise.all([node.ended, unfinished]);
  }

  const database = await openDatabase(`sqlite:${join(dir, "gatehouse.sqlite")}`);
  t.teardown(() => database.close());
  const count = async (table: string): Promise<number> => {
    const row = await database.read.first<{ count: number }>((sql) => sql(table).count({ count: "*" }));
    return row!.count;
  };
  const included = await count("transactions");
  t.is(await count("programs"), included);
  t.is(await count("program_documents"), included);
  t.is(await count("program_fields"), 2 * included);
  const [integrity] = await database.read.rows<{ integrity_check: string }>((sql) => sql.raw("PRAGMA integrity_check"));
  t.is(integrity?.integrity_check, "ok");

  const node = await startTestNode(t, {}, dir);
  const client = chainClient(node);
  let previous = (await client.getHead({})).genesisHash;
  let transactions = 0;
  for await (const { block } of client.listBlocks({ fromNumber: 1n })) {
    const { header, transactionHashes } = decodeBlock(block!);
    t.is(header.previousHash, previous);
    previous = sha256(block!.header);
    transactions += transactionHashes.length;
  }
  t.true(transactions >= included);
  t.log(`${transactions} transactions, ${reported.size} of them reported as included before a kill`);
});

/** Locks an SQLite file against writes, as another process would. Returns the function that unlocks it. */
async function lockFile(t: ExecutionContext, filename: string, update: string): Promise<() => Promise<void>> {
  const locker = knex({ client: "sqlite3", connection: { filename }, useNullAsDefault: true });
  t.teardown(() => locker.destroy());
  const lock = await locker.transaction();
  t.teardown(() => lock.rollback());
  await lock.raw(update);
  return async () => void (await lock.rollback());
}

/** Time in milliseconds after which a locked database makes /health failing. */
const lockedForMs = 5_000;

interface FailingHealth {
  readonly status: string;
  readonly subsystems: { readonly chain: { readonly lastError: { readonly message: string } } };
}

test("while another process locks the database, submissions get 503 and nothing pending is lost", async (t) => {
  const dir = await authorityDirectory(t, authority);
  const node = await startTestNode(t, { genesis: join(dir, "genesis.json") }, dir);
  const client = chainClient(node);
  const filename = join(dir, "gatehouse.sqlite");
  const unlockBlocks = await lockFile(t, filename, "UPDATE blocks SET number = number");
  const first = newProgram(alice, 1);
  await client.submitTransaction({ transaction: first });
  const whyChainFails = async () => (await askJson<FailingHealth>(node.port, "/health")).subsystems.chain.lastError;
  await until(async () => (await whyChainFails())?.message === "The database accepts no writes (SQLITE_BUSY).");

  const unlockMempool = await lockFile(t, `${filename}${mempoolSuffix}`, "DELETE FROM rejected_transactions");
  const second = newProgram(alice, 2);
  const response = await post(node.port, second);
  t.is(response.status, 503);
  t.like(JSON.parse(response.text), { errorCode: "DATABASE_UNAVAILABLE", retryAfter: 5 });
  t.is((await askJson<FailingHealth>(node.port, "/health")).status, "failing");
  await unlockBlocks();
  await until(() => areIncluded(client, sha256(first.body)));
  t.is((await askJson<FailingHealth>(node.port, "/health")).status, "failing", "no transaction can be stored yet");
  await unlockMempool();
  await until(async () => (await ask(node.port, "/health")).status === 200);

  await client.submitTransaction({ transaction: second });
  await until(() => areIncluded(client, sha256(first.body), sha256(second.body)));
  t.is((await ask(node.port, "/storage-program/search?q=p")).status, 200);
});

test("during a short lock of another process, /health stays ok and submissions get OVERLOADED", async (t) => {
  const dir = await authorityDirectory(t, authority);
  const node = await startTestNode(t, { genesis: join(dir, "genesis.json") }, dir);
  const client = chainClient(node);
  const filename = join(dir, "gatehouse.sqlite");
  const statuses = new Set<number>();
  const over = new AbortController();
  const lockedAtMs = performance.now();
  const probing = (async () => {
    while (!over.signal.aborted) {
      const { status } = await ask(node.port, "/health");
      // On a busy machine, the test may hold the lock for longer than a node tolerates.
      if (performance.now() - lockedAtMs < lockedForMs) {
        statuses.add(status);
      }
      await sleep(50);
    }
  })();
  const unlockBlocks = await lockFile(t, filename, "UPDATE blocks SET number = number");
  const unlockMempool = await lockFile(t, `${filename}${mempoolSuffix}`, "DELETE FROM rejected_transactions");
  const first = newProgram(alice, 1);
  const error = await t.throwsAsync(client.submitTransaction({ transaction: first }));
  t.like(readFailure(error), { reason: "OVERLOADED", retryAfterS: 5 });
  await unlockMempool();
  await client.submitTransaction({ transaction: first });
  await until(() => statuses.size > 0);
  // Block production waits for the lock meanwhile, up to the timeout of the engine.
  await sleep(2_500);
  await unlockBlocks();
  await until(() => areIncluded(client, sha256(first.body)));
  over.abort();
  await probing;
  t.deepEqual([...statuses], [200]);
});

test("a kill between storing a block and updating the mempool includes no transaction twice", async (t) => {
  const dir = await authorityDirectory(t, authority);
  const mempoolFile = join(dir, `gatehouse.sqlite${mempoolSuffix}`);
  const node = await startNodeProcess(t, dir, ["--genesis", join(dir, "genesis.json")]);
  const client = chainClient(node);
  const mempool = knex({ client: "sqlite3", connection: { filename: mempoolFile }, useNullAsDefault: true });
  t.teardown(() => mempool.destroy());
  // The trigger ignores the removals from the mempool while blocks are stored.
  await mempool.raw(
    "CREATE TRIGGER ignore_deletes BEFORE DELETE ON pending_transactions BEGIN SELECT RAISE(IGNORE); END",
  );
  const transactions = [1, 2, 3].map((nonce) => newProgram(alice, nonce));
  await Promise.all(transactions.map((transaction) => include(client, transaction)));
  node.child.kill("SIGKILL");
  await node.ended;
  t.is((await mempool<{ hash: string }>("pending_transactions").select("hash")).length, 3);
  await mempool.raw("DROP TRIGGER ignore_deletes");

  const restarted = await startTestNode(t, {}, dir);
  const restartedClient = chainClient(restarted);
  t.true(await areIncluded(restartedClient, ...transactions.map(({ body }) => sha256(body))));
  t.is((await askJson<{ mempool_size: number }>(restarted.port, "/health")).mempool_size, 0);
  t.is((await mempool<{ hash: string }>("pending_transactions").select("hash")).length, 0);
  await include(restartedClient, newProgram(alice, 4));
  t.is((await askJson<{ count: number }>(restarted.port, "/storage-program/search?q=p")).count, 4);
});
