/** Health of a busy node: /health never reports failing, and rejected clients get a retry delay. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import type { Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { leaseMs } from "../../src/chain/writer/writer-lease-store.js";
import { openDatabase } from "../../src/db/open.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import type { HealthBody } from "../helpers/process/health-shape.js";
import { testKey } from "../helpers/chain/keys.js";
import { ask } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { authorityDirectory } from "../helpers/nodes/start-node.js";
import { type RunningCli, startNodeProcess } from "../helpers/nodes/run-cli.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";

const engines = await prepareEngines();

const [authority, alice] = [testKey(1), testKey(2)];

async function startBusy(t: Teardown, engine: (typeof engines.names)[number]) {
  const dir = await authorityDirectory(t, authority);
  const database = await engines.createUrl(t, engine);
  const flags = ["--genesis", join(dir, "genesis.json"), "--database", database];
  const node = await startNodeProcess(t, dir, flags);
  const client = createClient(ChainService, createGrpcTransport({ baseUrl: node.ready.rpc }));
  return {
    ...node,
    database,
    submit: (transaction: Transaction) => client.submitTransaction({ transaction }),
    isIncluded: async ({ body }: Transaction): Promise<boolean> =>
      (await client.getTransaction({ hash: sha256(body) })).status === TransactionStatus.INCLUDED,
  };
}

/** Polls the health until the returned function is called, which returns the failing responses. */
function probe(node: RunningCli): () => Promise<{ readonly probeCount: number; readonly failing: HealthBody[] }> {
  const failing: HealthBody[] = [];
  let [probeCount, isOver] = [0, false];
  const done = (async () => {
    while (!isOver) {
      const { status, text } = await ask(node.port, "/health");
      probeCount++;
      if (status !== 200) {
        failing.push(JSON.parse(text) as HealthBody);
      }
      await sleep(20);
    }
  })();
  return async () => {
    isOver = true;
    await done;
    return { probeCount, failing };
  };
}

const troubles = ({ subsystems }: HealthBody): unknown[] =>
  Object.entries(subsystems).flatMap(([name, { status, lastError }]) =>
    status === "failed" ? [{ name, lastError }] : [],
  );

const members = 90_000;
const largeDocument = JSON.stringify(Object.fromEntries(Array.from({ length: members }, (_, i) => [`m${i}`, i % 10])));

for (const engine of engines.names) {
  test.serial(`${engine}: never reports failing while a document with many members is written`, async (t) => {
    const node = await startBusy(t, engine);
    const end = probe(node);
    const large = [1, 2, 3].map((n) => signTransaction(alice, n, createPublic(`large${n}`, largeDocument)));
    const reasons = new Set<string>();
    for (const transaction of large) {
      // Rejected clients try again.
      await until(() =>
        node.submit(transaction).then(
          () => true,
          (error: unknown) => {
            reasons.add(String(readFailure(error).reason));
            return false;
          },
        ),
      );
    }
    for (let i = 0; !(await node.isIncluded(large.at(-1)!)); i++) {
      await node
        .submit(signTransaction(testKey(10 + (i % 50)), 1 + i, createPublic(`s${i}`, "{}")))
        .catch((error: unknown) => {
          reasons.add(String(readFailure(error).reason));
        });
    }
    const { probeCount, failing } = await end();
    t.deepEqual(failing.map(troubles), [], `${probeCount} were asked`);
    t.true(
      [...reasons].every((reason) => reason === "OVERLOADED"),
      [...reasons].join(),
    );
    t.log(`${probeCount} probes`);
  });

  test.serial(`${engine}: never reports failing during hundreds of concurrent submissions`, async (t) => {
    const node = await startBusy(t, engine);
    const end = probe(node);
    const reasons = new Map<string, number>();
    let refusedWithoutTime = 0;
    let accepted: Transaction | undefined;
    for (let round = 0; round < 8; round++) {
      await Promise.all(
        Array.from({ length: 400 }, async (_, i) => {
          const transaction = signTransaction(
            testKey(10 + (i % 200)),
            1 + 2 * round + Math.floor(i / 200),
            createPublic(`p${round}-${i}`, `{"text":"${"x".repeat(2_000)}"}`),
          );
          try {
            await node.submit(transaction);
            accepted = transaction;
          } catch (error) {
            const { reason, retryAfterS } = readFailure(error);
            reasons.set(String(reason), (reasons.get(String(reason)) ?? 0) + 1);
            refusedWithoutTime += Number(retryAfterS === undefined);
          }
        }),
      );
    }
    await until(() => node.isIncluded(accepted!));
    const { probeCount, failing } = await end();
    t.deepEqual(failing.map(troubles), [], `${probeCount} were asked`);
    t.true(
      [...reasons.keys()].every((reason) => reason === "OVERLOADED"),
      [...reasons].join(),
    );
    t.is(refusedWithoutTime, 0);
    t.log(`${probeCount} probes`, ...reasons);
  });
}

const testPostgresql = testUnless(engines.names.includes("postgresql") ? undefined : "PostgreSQL is not there");

testPostgresql("a block that takes longer to store than a lease holds is no failure", async (t) => {
  const node = await startBusy(t, "postgresql");
  const database = await openDatabase(node.database);
  t.teardown(() => database.close());
  const slowly = ["blocks", "transactions", "senders", "programs"];
  await database.write.run((sql) =>
    sql.raw(
      "CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(4); RETURN NULL; END';" +
        slowly
          .map(
            (table) => `CREATE TRIGGER slowly AFTER INSERT ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION slowly();`,
          )
          .join(""),
    ),
  );
  const transaction = signTransaction(alice, 1, createPublic("slow", "{}"));
  await node.submit(transaction);
  const begunMs = performance.now();
  const end = probe(node);
  await until(() => node.isIncluded(transaction));
  t.true(performance.now() - begunMs > leaseMs + 4_000);
  t.deepEqual((await end()).failing.map(troubles), []);
});
