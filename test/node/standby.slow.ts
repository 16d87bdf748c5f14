/** Standby processes over a real PostgreSQL: they take over from a writer that is stopped, killed or frozen. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { join } from "node:path";
import pg from "pg";
import { setTimeout as sleep } from "node:timers/promises";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { decodeBlock } from "../../src/chain/transactions/transaction.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { StartError } from "../../src/base/errors/start-error.js";
import { readLease, leaseMs, type StoredLease } from "../../src/chain/writer/writer-lease-store.js";
import { openDatabase, withDatabase } from "../../src/db/open.js";
import { testKey } from "../helpers/chain/keys.js";
import { askJson } from "../helpers/wire/plain-client.js";
import {
  type PostgresDatabases,
  type PostgresServer,
  sharedPostgres,
  startPostgres,
} from "../helpers/databases/postgres-server.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { type RunningCli, startCli } from "../helpers/nodes/run-cli.js";
import { authorityDirectory, controlTransport, startTestNode } from "../helpers/nodes/start-node.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";

const [authority, alice, stranger] = [testKey(1), testKey(2), testKey(3)];
const started = await sharedPostgres();
const testPostgres = testUnless(typeof started === "string" ? started : undefined);
const postgres = started as PostgresDatabases;
/** Server that a test stops. */
const alone = await startPostgres();

const commonFlags = ["--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0", "--log-level", "info", "--recover"];

/** Starts a process with the authority's key, in its own data directory. */
async function startRole(t: Teardown, database: string, role: "writer" | "standby", ...more: string[]) {
  const dir = await authorityDirectory(t, authority);
  const genesis = role === "writer" ? ["--genesis", join(dir, "genesis.json")] : [];
  const args = ["start", "--data-dir", dir, "--database", database, "--role", role];
  const running = await startCli(t, [...args, ...genesis, ...commonFlags, ...more]);
  return { ...running, dir, client: clientOf(running.ready.rpc) };
}

function clientOf(rpcUrl: string) {
  return createClient(ChainService, createGrpcTransport({ baseUrl: rpcUrl }));
}
type Client = ReturnType<typeof clientOf>;

const createTransaction = (nonce: number, sender = alice) =>
  signTransaction(sender, nonce, createPublic(`p${nonce}`, `{"n":${nonce}}`));

async function isIncluded(client: Client, hash: string): Promise<boolean> {
  return (await client.getTransaction({ hash })).status === TransactionStatus.INCLUDED;
}

/** Submits a transaction, and waits until a block includes it. */
async function include(client: Client, nonce: number): Promise<void> {
  const transaction = createTransaction(nonce);
  await client.submitTransaction({ transaction });
  await until(() => isIncluded(client, sha256(transaction.body)));
}

/** The JSON lines that a process has written to stdout: one for each role that it has taken. */
function readyLines({ stdout }: Pick<RunningCli, "stdout">): RunningCli["ready"][] {
  return stdout()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as RunningCli["ready"]);
}

/** Resolves once the standby is the writer. */
async function hasTakenOver(standby: RunningCli): Promise<void> {
  await until(() => readyLines(standby).length === 2, "the standby takes over");
}

interface Health {
  readonly status: string;
  readonly accepting: boolean;
  readonly dormant: boolean;
  readonly subsystems: {
    readonly chain: {
      readonly status: string;
      readonly lastError: { readonly message: string } | null;
      readonly extra?: { readonly reason: string };
    };
  };
}

testPostgres.serial("a standby serves reads, reports its role, and stays off the peer network", async (t) => {
  const database = await postgres.createDatabase();
  const writer = await startRole(t, database, "writer");
  const standby = await startRole(t, database, "standby", "--peers", "examples/peers.json");
  t.is(writer.ready.role, "writer");
  t.is(standby.ready.role, "standby");
  await include(writer.client, 1);
  await until(async () => (await standby.client.getHead({})).number === 1n);
  const health = await askJson<Health>(standby.port, "/health");
  t.like(health, { accepting: false, dormant: true });
  t.is(health.subsystems.chain.status, "ready");
  t.regex(health.subsystems.chain.extra!.reason, /^Standby: /);
  const rejected = readFailure(
    await t.throwsAsync(standby.client.submitTransaction({ transaction: createTransaction(2) })),
  );
  t.is(rejected.reason, "STATE_NOT_READY");
  const control = createClient(ControlService, controlTransport(join(standby.dir, "control.sock")));
  const noPeer = readFailure(await t.throwsAsync(control.addPeer({ endpoint: "https://192.0.2.1:1" })));
  t.is(noPeer.reason, "STATE_NOT_READY");
  t.deepEqual(await askJson(standby.port, "/peerlist"), []);

  standby.child.kill("SIGTERM");
  t.is(await standby.ended, 0);
  t.is(readyLines(standby).length, 1);
  await include(writer.client, 2);
});

testPostgres.serial(
  "a standby does not start with another key, without a key, over SQLite or without write permission",
  async (t) => {
    const database = await postgres.createDatabase();
    const dir = await authorityDirectory(t, authority);
    await (await startTestNode(t, { database, genesis: "genesis.json" }, dir)).stop();
    const flags = { database, role: "standby", recover: true };
    await t.throwsAsync(startTestNode(t, flags, await authorityDirectory(t, stranger)), {
      instanceOf: StartError,
      message: `The database belongs to the node ${authority.publicKey}; this key is ${stranger.publicKey}. Restore the key from the backup.`,
    });
    await t.throwsAsync(startTestNode(t, flags), {
      message: /whose key is not at .* Restore the key from the backup\.$/,
    });
    await t.throwsAsync(startTestNode(t, { role: "standby" }), { message: /^A standby requires PostgreSQL/ });
    const opened = await openDatabase(database);
    t.teardown(() => opened.close());
    await opened.write.runAll((sql) => [
      sql.raw("CREATE ROLE only_reads LOGIN PASSWORD 'reads'"),
      sql.raw("GRANT SELECT ON ALL TABLES IN SCHEMA public TO only_reads"),
    ]);
    const readOnly = Object.assign(new URL(database), { username: "only_reads", password: "reads" }).href;
    await t.throwsAsync(startTestNode(t, { ...flags, database: readOnly }, dir), {
      message: /^A standby needs permission to write to the database: permission denied for table writer_lease\.$/,
    });
  },
);

testPostgres.serial("a standby takes over at once from a stopped writer, and keeps its own ports", async (t) => {
  const database = await postgres.createDatabase();
  const writer = await startRole(t, database, "writer");
  const standby = await startRole(
    t,
    database,
    "standby",
    "--control-port",
    "0",
    "--metrics-enabled",
    "--metrics-port",
    "0",
  );
  const metricsPort = async (): Promise<number> =>
    (await askJson<{ ports: { metrics: { actual: number } } }>(standby.port, "/health")).ports.metrics.actual;
  const before = await metricsPort();
  await include(writer.client, 1);
  writer.child.kill("SIGTERM");
  t.is(await writer.ended, 0);
  await hasTakenOver(standby);
  const [first, second] = readyLines(standby);
  t.deepEqual(second, { ...first!, role: "writer" });
  t.is(await metricsPort(), before);
  await include(standby.client, 2);
  const health = await askJson<Health>(standby.port, "/health");
  t.true(health.accepting);
  t.is(health.subsystems.chain.extra, undefined);
  const error = await t.throwsAsync(startRole(t, database, "writer"));
  t.regex(error.message, new RegExp(`process ${standby.child.pid} on .* writes to this database`));
  standby.child.kill("SIGTERM");
  t.is(await standby.ended, 0);
});

testPostgres.serial(
  "a standby replaces a frozen writer, which writes nothing once it resumes, stands by, and takes over in turn",
  async (t) => {
    const url = await postgres.createDatabase();
    const writer = await startRole(t, url, "writer");
    const standby = await startRole(t, url, "standby");
    await include(writer.client, 1);
    // Freezes the writer while it produces blocks, so that it may be in the middle of one.
    const load = Array.from({ length: 40 }, (_, i) =>
      writer.client.submitTransaction({ transaction: createTransaction(1, testKey(10 + i)) }),
    );
    load.forEach((submission) => void submission.catch(() => undefined));
    await Promise.race(load);
    writer.child.kill("SIGSTOP");
    await hasTakenOver(standby);
    await include(standby.client, 100);
    const pending = standby.client.submitTransaction({ transaction: createTransaction(101) });

    writer.child.kill("SIGCONT");
    await pending;
    await until(() => readyLines(writer).length === 2, "the old writer stands by");
    t.is(readyLines(writer)[1]!.role, "standby");
    t.deepEqual(readyLines(writer)[1], { ...writer.ready, role: "standby" }, "on its own ports");
    const health = await askJson<Health>(writer.port, "/health");
    t.like(health, { accepting: false, dormant: true });
    t.is(health.subsystems.chain.status, "ready");
    t.regex(
      health.subsystems.chain.extra!.reason,
      /^Standby: .* It was the writer until \d{4}-.*Z, when another node had taken over\.$/,
    );
    t.regex(writer.stderr(), new RegExp(`process ${standby.child.pid} on .* has the writer lease now`));
    const rejected = readFailure(
      await t.throwsAsync(writer.client.submitTransaction({ transaction: createTransaction(200) })),
    );
    t.is(rejected.reason, "STATE_NOT_READY");
    for (const submission of load) {
      const accepted = await submission.catch(() => undefined);
      if (accepted !== undefined) {
        await until(() => isIncluded(standby.client, accepted.hash), "what the old writer accepted is in a block");
      }
    }
    await include(standby.client, 102);
    await checkBlocks(url);
    standby.child.kill("SIGKILL");
    await until(() => readyLines(writer).length === 3, "the old writer takes over");
    await include(writer.client, 103);
    await checkBlocks(url);
    const { chain } = (await askJson<Health>(writer.port, "/health")).subsystems;
    t.deepEqual([chain.status, chain.extra], ["ready", undefined]);
    writer.child.kill("SIGTERM");
    t.is(await writer.ended, 0, writer.stderr());
  },
);

const testAlone = testUnless(typeof alone === "string" ? alone : undefined);
testAlone.after(() => (alone as PostgresServer).remove());

testAlone.serial(
  "a standby takes no lease that expired during an outage before the writer could renew it for a full term",
  async (t) => {
    const server = alone as PostgresServer;
    const url = await server.createDatabase();
    const writer = await startRole(t, url, "writer");
    const standby = await startRole(t, url, "standby");
    await include(writer.client, 1);
    const before = await readLeaseOf(url);
    // The writer renews nothing until it is resumed.
    writer.child.kill("SIGSTOP");
    await server.stop();
    await sleep(leaseMs);
    await server.start();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    t.teardown(() => client.end());
    const reads = new Set<string>();
    await until(async () => {
      const { rows } = await client.query<{ at: string }>(
        `SELECT CAST(query_start AS text) AS at FROM pg_stat_activity
          WHERE application_name = 'gatehouse' AND query LIKE 'select%"writer_lease"%'`,
      );
      rows.forEach(({ at }) => reads.add(at));
      return reads.size >= 3;
    }, "the standby has read the expired lease");
    writer.child.kill("SIGCONT");
    await until(async () => (await readLeaseOf(url)).untilMs > before.untilMs, "the writer renews the lease");
    await include(writer.client, 2);
    t.is((await readLeaseOf(url)).epoch, before.epoch);
    t.is(readyLines(standby).length, 1);

    // The database stays up, so the standby replaces the writer once that is gone.
    writer.child.kill("SIGKILL");
    await hasTakenOver(standby);
    await include(standby.client, 3);
  },
);

async function readLeaseOf(url: string): Promise<StoredLease> {
  return await withDatabase(url, ({ read }) => readLease(read));
}

/** Throws unless the stored blocks are one chain without gaps. */
async function checkBlocks(url: string): Promise<void> {
  const database = await openDatabase(url);
  try {
    const rows = await database.read.rows<{ number: number; hash: string; previous_hash: string | null }>((sql) =>
      sql("blocks").orderBy("number").select("number", "hash", "previous_hash"),
    );
    for (const [i, { number, previous_hash }] of rows.entries()) {
      if (number !== i || previous_hash !== (rows[i - 1]?.hash ?? null)) {
        throw new Error(`Block ${number} is not on top of the one before.`);
      }
    }
  } finally {
    await database.close();
  }
}

testPostgres.serial(
  "writers killed repeatedly under load are replaced, and no acknowledged transaction is lost",
  async (t) => {
    const url = await postgres.createDatabase();
    let writer = await startRole(t, url, "writer");
    const acknowledged: string[] = [];
    let nonce = 0;
    for (let round = 0; round < 3; round++) {
      const standby = await startRole(t, url, "standby");
      const targetCount = acknowledged.length + 60;
      const { client, child } = writer;
      let isFinished = false;
      const senders = [10, 11, 12].map(async (sender) => {
        while (!isFinished) {
          nonce++;
          await client.submitTransaction({ transaction: createTransaction(nonce, testKey(sender)) }).then(
            ({ hash }) => acknowledged.push(hash),
            () => (isFinished = true),
          );
        }
      });
      await until(() => acknowledged.length >= targetCount);
      await sleep(60 * round);
      child.kill("SIGKILL");
      await Promise.all([writer.ended, ...senders]);
      await hasTakenOver(standby);
      writer = standby;
    }
    for (const hash of acknowledged) {
      await until(async () => {
        const { status } = await writer.client.getTransaction({ hash });
        t.true(status === TransactionStatus.INCLUDED || status === TransactionStatus.PENDING);
        return status === TransactionStatus.INCLUDED;
      });
    }
    await checkBlocks(url);
    const seen = new Set<string>();
    for await (const { block } of writer.client.listBlocks({ fromNumber: 1n })) {
      for (const hash of decodeBlock(block!).transactionHashes) {
        t.false(seen.has(hash), "once");
        seen.add(hash);
      }
    }
    t.deepEqual(
      acknowledged.filter((hash) => !seen.has(hash)),
      [],
    );
    t.log(`${acknowledged.length} transactions acknowledged`);
  },
);

testPostgres.serial(
  "a new writer waits for the lease of a dead writer on another machine, and logs the remaining time",
  async (t) => {
    const url = await postgres.createDatabase();
    const first = await startRole(t, url, "writer");
    await include(first.client, 1);
    const database = await openDatabase(url);
    t.teardown(() => database.close());
    first.child.kill("SIGKILL");
    await first.ended;
    // Longer than a busy machine takes to start a process.
    const expiry = `${database.read.dialect.nowMs} + 25000`;
    await database.write.run((sql) =>
      sql("writer_lease").update({ machine: "another", host: "elsewhere", until_ms: sql.raw(expiry) }),
    );
    const second = await startRole(t, url, "writer");
    t.regex(
      second.stderr(),
      /process \d+ on elsewhere, since .*, had the writer lease and does not renew it; the lease expires in \d+ s/,
    );
    await include(second.client, 2);
  },
);

testPostgres.serial(
  "SIGTERM stops a standby that is taking over, and another standby takes over instead",
  async (t) => {
    const url = await postgres.createDatabase();
    const writer = await startRole(t, url, "writer");
    const standbys = await Promise.all([1, 2].map(() => startRole(t, url, "standby")));
    writer.child.kill("SIGTERM");
    t.is(await writer.ended, 0);
    const isTakingOver = (standby: RunningCli): boolean => standby.stderr().includes("takes over as the writer");
    await until(() => standbys.some(isTakingOver));
    const [first, second] = isTakingOver(standbys[0]!) ? [standbys[0]!, standbys[1]!] : [standbys[1]!, standbys[0]!];
    first.child.kill("SIGTERM");
    t.is(await first.ended, 0, first.stderr());
    await hasTakenOver(second);
    await include(second.client, 1);
  },
);
