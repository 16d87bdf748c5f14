/** A node behind PgBouncer, which gives each transaction any of its connections. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { prepareWrite } from "../../src/chain/writer/writer-lease-store.js";
import { openDatabase } from "../../src/db/open.js";
import { testKey } from "../helpers/chain/keys.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { type PostgresServer, startPostgres } from "../helpers/databases/postgres-server.js";
import { freePort } from "../helpers/nodes/free-port.js";
import { startNodeProcess } from "../helpers/nodes/run-cli.js";
import { authorityDirectory } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { ask } from "../helpers/wire/plain-client.js";
import { eventually, until } from "../helpers/nodes/until.js";
import { isInstalled, testUnless, whyNotInstalled } from "../helpers/nodes/when.js";

const [authority, alice] = [testKey(1), testKey(2)];
const started = whyNotInstalled({ pgbouncer: isInstalled("pgbouncer") }) ?? (await startPostgres());
const testPooler = testUnless(typeof started === "string" ? started : undefined);
const postgres = started as PostgresServer;
testPooler.after(() => postgres.remove());

/** Starts PgBouncer in transaction mode in front of a database, and returns the URL of the database through it. */
async function startPooler(t: Teardown, database: string): Promise<string> {
  const dir = await temporaryDirectory(t);
  const port = await freePort();
  const target = new URL(database);
  const settings = [
    "[databases]",
    `gatehouse = host=127.0.0.1 port=${target.port} dbname=${target.pathname.slice(1)} user=gatehouse password=gatehouse`,
    "[pgbouncer]",
    `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
    "auth_type = any\npool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 200",
  ];
  await writeFile(join(dir, "pgbouncer.ini"), settings.join("\n"));
  await chmod(dir, 0o755);
  // PgBouncer does not run as root.
  const isRoot = process.getuid?.() === 0;
  const user = isRoot ? { uid: Number(execFileSync("id", ["-u", "nobody"], { encoding: "utf8" })) } : {};
  const child = spawn("pgbouncer", [join(dir, "pgbouncer.ini")], { stdio: "ignore", ...user });
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }
  });
  const url = `postgres://gatehouse:gatehouse@127.0.0.1:${port}/gatehouse`;
  await eventually("the pooler serves the database", async () => {
    await (await openDatabase(url)).close();
    return true;
  });
  return url;
}

testPooler.serial("every transaction that a node acknowledges waits for the disk, over any connection", async (t) => {
  const database = await postgres.createDatabase();
  const direct = await openDatabase(database);
  t.teardown(() => direct.close());
  await direct.write.run((sql) => sql.raw("ALTER ROLE gatehouse SET synchronous_commit = off"));
  t.teardown(() => direct.write.run((sql) => sql.raw("ALTER ROLE gatehouse RESET synchronous_commit")));
  const url = await startPooler(t, database);
  const databases = await Promise.all([1, 2, 3].map(() => openDatabase(url)));
  databases.forEach((database) => t.teardown(() => database.close()));
  let waiting = databases.length;
  let release: () => void = () => undefined;
  const all = new Promise<void>((resolve) => (release = resolve));
  const seen = await Promise.all(
    databases.map(({ transaction }) =>
      transaction(async (db) => {
        await prepareWrite(db);
        const [row] = await db.rows<{ mode: string; pid: number }>((sql) =>
          sql.raw("SELECT current_setting('synchronous_commit') AS mode, pg_backend_pid() AS pid"),
        );
        // All transactions are open at the same time, so each has a connection of its own.
        waiting--;
        if (waiting === 0) {
          release();
        }
        await all;
        return row!;
      }),
    ),
  );
  t.deepEqual(
    seen.map(({ mode }) => mode),
    ["on", "on", "on"],
  );
  t.is(new Set(seen.map(({ pid }) => pid)).size, 3);
  const [after] = await databases[0]!.write.rows<{ mode: string }>((sql) =>
    sql.raw("SELECT current_setting('synchronous_commit') AS mode"),
  );
  t.is(after!.mode, "off", "other users of the pooler's connections keep their setting");
});

testPooler.serial("a node accepts transactions and makes blocks of them", async (t) => {
  const url = await startPooler(t, await postgres.createDatabase());
  const dir = await authorityDirectory(t, authority);
  const node = await startNodeProcess(t, dir, ["--genesis", join(dir, "genesis.json"), "--database", url]);
  const client = createClient(ChainService, createGrpcTransport({ baseUrl: node.ready.rpc }));
  const transactions = Array.from({ length: 20 }, (_, i) =>
    signTransaction(alice, i + 1, createPublic(`p${i}`, `{"n":${i}}`)),
  );
  await Promise.all(transactions.map((transaction) => client.submitTransaction({ transaction })));
  for (const { body } of transactions) {
    await until(
      async () => (await client.getTransaction({ hash: sha256(body) })).status === TransactionStatus.INCLUDED,
    );
  }
  t.is((await ask(node.port, "/health")).status, 200);
});
