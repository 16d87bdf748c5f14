/** A node over PostgreSQL. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { join } from "node:path";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { createFence } from "../../src/chain/writer/fence-store.js";
import { createWriterLeaseStore, leaseMs } from "../../src/chain/writer/writer-lease-store.js";
import { acquireTimeoutMs } from "../../src/db/queries/connection-pools.js";
import { migrate } from "../../src/node/migrations/migrate.js";
import { migrations } from "../../src/node/migrations/migrations.js";
import { openDatabase } from "../../src/db/open.js";
import { authorityDirectory, startTestNode } from "../helpers/nodes/start-node.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { testKey } from "../helpers/chain/keys.js";
import { type PostgresServer, startPostgres } from "../helpers/databases/postgres-server.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import type { HealthBody } from "../helpers/process/health-shape.js";
import { parseMetrics } from "../helpers/process/prometheus.js";
import { runCliProcess, startNodeProcess } from "../helpers/nodes/run-cli.js";
import { until } from "../helpers/nodes/until.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { testUnless } from "../helpers/nodes/when.js";

const [authority, alice] = [testKey(1), testKey(2)];
const started = await startPostgres();

const testPostgres = testUnless(typeof started === "string" ? started : undefined);
const postgres = started as PostgresServer;
testPostgres.after(() => postgres.remove());
testPostgres.serial("the errors for a missing database and a wrong password name the cause", async (t) => {
  const url = new URL(await postgres.createDatabase());
  url.pathname = "/nowhere";
  await t.throwsAsync(startTestNode(t, { database: url.href }), {
    message: new RegExp(`^The database ${url.host}/nowhere does not exist; create it with: createdb nowhere`),
  });
  url.password = "wrong";
  await t.throwsAsync(startTestNode(t, { database: url.href }), { message: /rejects the user or the password/ });
});

testPostgres.serial("a block is stored even if its transaction is idle for longer than the writer lease", async (t) => {
  const database = await openDatabase(await postgres.createDatabase());
  t.teardown(() => database.close());
  await migrate(database);
  const lease = createWriterLeaseStore(database);
  const by = { holder: "one", host: "a host", machine: "a machine", pid: 7, identity: authority.publicKey };
  const held = { holder: by.holder, epoch: (await lease.acquire(await lease.read(), by))! };
  const fence = createFence({ held, files: undefined, onOutcome: () => undefined });
  await database.transaction((db) =>
    fence.blocks(db, async () => {
      await sleep(1.2 * leaseMs);
      await db.run((sql) => sql("writer_lease").update({ host: "another host" }));
    }),
  );
  t.is((await lease.read()).holder?.host, "another host");
});

testPostgres.serial("concurrent migrations of a database all succeed, and run each step once", async (t) => {
  const url = await postgres.createDatabase();
  const databases = await Promise.all(Array.from({ length: 4 }, () => openDatabase(url)));
  t.teardown(() => Promise.all(databases.map((database) => database.close())));
  await Promise.all(databases.map((database) => migrate(database)));
  const [first] = databases;
  t.is((await first!.read.rows((sql) => sql("schema_migrations"))).length, migrations.length);
});

/** Returns the URL of a proxy that delays the requests of each new connection. */
async function delayConnections(t: Teardown, database: string, delayMs: number): Promise<string> {
  const url = new URL(database);
  const { hostname, port } = url;
  const proxy = createServer((client) => {
    const server = connect(Number(port), hostname);
    for (const socket of [client, server]) {
      socket.on("error", () => socket.destroy());
    }
    server.pipe(client);
    void sleep(delayMs).then(() => client.pipe(server));
  });
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  t.teardown(() => proxy.close());
  url.host = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return url.href;
}

testPostgres.serial("opens a database whose server connects later than a query waits for a connection", async (t) => {
  const database = await openDatabase(
    await delayConnections(t, await postgres.createDatabase(), acquireTimeoutMs + 500),
  );
  t.deepEqual(await database.write.rows((sql) => sql.raw("SELECT 7 AS seven")), [{ seven: 7 }]);
  await database.close();
});

testPostgres.serial("a server that connects slowly is not considered lost while it runs a query", async (t) => {
  const database = await openDatabase(await delayConnections(t, await postgres.createDatabase(), 2_000));
  t.deepEqual(await database.write.rows((sql) => sql.raw("SELECT 7 AS seven FROM pg_sleep(9)")), [{ seven: 7 }]);
  await database.close();
});

testPostgres.serial("a stopped server turns health to failing, and the node recovers without loss", async (t) => {
  const dir = await authorityDirectory(t, authority);
  const database = await postgres.createDatabase();
  const peers = join(dir, "peers.json");
  await writeFile(peers, '[{"url":"https://127.0.0.1:9"}]');
  const flags = ["--genesis", join(dir, "genesis.json"), "--database", database, "--peers", peers];
  const loop = ["--loop-interval", "0.2", "--log-level", "info", "--metrics-enabled", "--metrics-port", "0"];
  const node = await startNodeProcess(t, dir, [...flags, ...loop]);
  const client = createClient(ChainService, createGrpcTransport({ baseUrl: node.ready.rpc }));
  const submit = async (nonce: number): Promise<string> => {
    const transaction = signTransaction(alice, nonce, createPublic(`p${nonce}`, `{"n":${nonce}}`));
    await client.submitTransaction({ transaction });
    return sha256(transaction.body);
  };
  const isIncluded = (hash: string) => async (): Promise<boolean> =>
    (await client.getTransaction({ hash })).status === TransactionStatus.INCLUDED;
  const first = await submit(1);
  await until(isIncluded(first));
  const healthy = await askJson<HealthBody>(node.port, "/health");
  t.like(healthy, { status: "ok", accepting: true });
  const scrape = () => ask(healthy.ports.metrics!.actual, "/metrics");
  t.is(parseMetrics((await scrape()).text).value("gatehouse_programs_created_total", {}), 1);

  await postgres.stop();
  // No health report is failing and accepts transactions, or is ok and rejects them.
  let down: HealthBody;
  do {
    down = await askJson<HealthBody>(node.port, "/health");
    t.is(down.accepting, down.status === "ok");
    await sleep(10);
  } while (down.status !== "failing");
  const { subsystems } = down;
  t.is((await ask(node.port, "/health")).status, 503);
  t.is(subsystems.chain!.status, "failed");
  // Either a read or the write of a block fails first.
  const noDatabase = String.raw`The database (does not respond|accepts no writes) \((ECONNREFUSED|ECONNRESET|57P0.)\)\.`;
  t.regex(subsystems.chain!.lastError!.message, new RegExp(`^${noDatabase}$`));
  const output = await runCliProcess(["health", "--node", node.ready.rpc]);
  t.is(output.code, 1);
  t.regex(output.stdout, new RegExp(`^failing   ${noDatabase}`));
  const rejected = await ask(node.port, "/storage-program/search?q=p1");
  t.is(rejected.status, 503);
  t.like(JSON.parse(rejected.text), { errorCode: "DATABASE_UNAVAILABLE" });
  t.is((await ask(node.port, "/livez")).status, 200);

  // Metrics are available and report the failure while the database is down.
  const scraped = await scrape();
  t.is(scraped.status, 200);
  const metrics = parseMetrics(scraped.text);
  t.is(metrics.value("gatehouse_health_status", { status: "failing" }), 1);
  t.is(metrics.value("gatehouse_programs_created_total", {}), 1, "the last known count is reported");
  await until(async () => parseMetrics((await scrape()).text).value("gatehouse_metrics_unread_total", {})! > 0);

  // The node retries many times meanwhile. Each component that retries logs the outage only once.
  const lines = (): string[] =>
    node
      .stderr()
      .split("\n")
      .filter((line) => /"level":(40|50)/.test(line));
  await until(() => lines().length > 0);
  await sleep(5_000);
  t.true(lines().length <= 12, lines().join("\n"));

  await postgres.start();
  await until(async () => (await askJson<HealthBody>(node.port, "/health")).status === "ok");
  await until(async () => (await askJson<HealthBody>(node.port, "/health")).accepting);
  t.true(await isIncluded(first)());
  const second = await submit(2);
  await until(isIncluded(second));
  const { programs } = await askJson<{ programs: { programName: string }[] }>(node.port, "/storage-program/search?q=p");
  t.deepEqual(
    programs.map(({ programName }) => programName),
    ["p2", "p1"],
  );
});
