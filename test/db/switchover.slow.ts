/** Failover between PostgreSQL servers while a node writes. */
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { join } from "node:path";
import type { Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { prepareWrite } from "../../src/chain/writer/writer-lease-store.js";
import { isDatabaseError } from "../../src/base/errors/database-error-kind.js";
import type { Database } from "../../src/db/queries/database.js";
import { openDatabase, withDatabase } from "../../src/db/open.js";
import type { Access } from "../../src/db/postgresql/postgresql-servers.js";
import { testKey } from "../helpers/chain/keys.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import type { HealthBody } from "../helpers/process/health-shape.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { type PostgresPair, startPostgresPair } from "../helpers/databases/postgres-pair.js";
import { startNodeProcess } from "../helpers/nodes/run-cli.js";
import { authorityDirectory } from "../helpers/nodes/start-node.js";
import { changePlacesOf, changeUnderLoad } from "../helpers/databases/switchovers.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { eventually, until } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";

const authority = testKey(1);
const started = await startPostgresPair();
const testPair = testUnless(typeof started === "string" ? started : undefined);
const pair = started as PostgresPair;
testPair.after(() => pair.remove());

/** Opens the database on these servers. */
async function open(t: Teardown, url: string, access?: Access): Promise<Database> {
  const database = await openDatabase(url, access);
  t.teardown(() => database.close());
  return database;
}

async function isStandby({ read }: Database): Promise<boolean | undefined> {
  const [row] = await read.rows<{ standby: boolean }>((sql) => sql.raw("SELECT pg_is_in_recovery() AS standby"));
  return row?.standby;
}

const insert = ({ write }: Database): Promise<unknown> => write.run((sql) => sql("counted").insert({ n: 1 }));

testPair.serial(
  "a writer connects to the primary at any position of the list, and a reader to a standby if there is one",
  async (t) => {
    const { urls } = pair;
    const unreachable = "postgres://gatehouse:gatehouse@127.0.0.1:9/gatehouse";
    const writer = await open(t, [...urls.toReversed(), unreachable].join(","));
    t.false(await isStandby(writer));
    await writer.write.run((sql) => sql.schema.createTable("counted", (table) => table.integer("n")));
    // A standby that takes more than a second to respond is skipped.
    let reader!: Database;
    await until(async () => {
      reader = await open(t, [unreachable, ...urls].join(","), "read");
      return (await isStandby(reader)) === true;
    });

    await t.throwsAsync(openDatabase(pair.standbyUrl()), {
      message: /\/gatehouse is a standby, which accepts no writes;/,
    });
    const { message } = await t.throwsAsync(openDatabase(`${unreachable},${pair.standbyUrl()}`));
    t.is(
      message.replace(/\d+\/gatehouse \(a/, "PORT/gatehouse (a"),
      "None of the databases is a primary that accepts writes: 127.0.0.1:9/gatehouse (ECONNREFUSED), " +
        "127.0.0.1:PORT/gatehouse (a standby).",
    );

    await pair.stopStandby();
    await until(async () => (await isStandby(reader).catch(() => undefined)) === false);
    await pair.startStandby();
  },
);

testPair.serial(
  "commits wait for the disk even if the role disables that, and risky server settings are reported",
  async (t) => {
    const database = await open(t, pair.urls.join(","));
    const commitMode = ({ transaction }: Database): Promise<unknown> =>
      transaction(async (db) => {
        await prepareWrite(db);
        return (await db.rows((sql) => sql.raw("SELECT current_setting('synchronous_commit') AS mode")))[0];
      });
    t.deepEqual(await commitMode(database), { mode: "on" });
    const [risk, ...others] = await database.durabilityRisks();
    t.is(risk, "PostgreSQL runs with fsync = off: a crash of its machine can lose or corrupt every block.");
    t.deepEqual(others, []);

    const set = (value: string): Promise<unknown> =>
      database.write.run((sql) => sql.raw(`ALTER ROLE gatehouse SET synchronous_commit = ${value}`));
    await set("off");
    const overridden = await open(t, pair.urls.join(","));
    t.deepEqual(await commitMode(overridden), { mode: "on" });
    await set("local");
    const local = await open(t, pair.urls.join(","));
    t.deepEqual(await commitMode(local), { mode: "local" });
    t.regex(
      (await local.durabilityRisks())[1]!,
      /^PostgreSQL runs with synchronous_commit = local, which does not wait for/,
    );
    await database.write.run((sql) => sql.raw("ALTER ROLE gatehouse RESET synchronous_commit"));
  },
);

testPair.serial("leaves a server that has become a standby, even if it is the only configured server", async (t) => {
  const database = await open(t, pair.primaryUrl());
  await insert(database);
  const isRejected = async (): Promise<boolean> => {
    const error: unknown = await insert(database).catch((thrown: unknown) => thrown);
    return isDatabaseError(error) && (error as NodeJS.ErrnoException).code === "25006";
  };
  await pair.changePlaces("stopped");
  await until(isRejected, "the standby rejects a write");
  await pair.changePlaces("stopped");
  await eventually("the server is the primary again", async () => (await insert(database)) !== undefined);
  t.false(await isStandby(database));
});

testPair.serial("leaves a server that stops responding within seconds", async (t) => {
  const database = await open(t, pair.urls.join(","));
  await insert(database);
  // The connection is open: the next query is sent, and no response arrives.
  t.false(await isStandby(database));
  const thaw = pair.freezePrimary();
  try {
    const error = await t.throwsAsync(database.read.rows((sql) => sql("counted")));
    t.true(isDatabaseError(error));
    await t.throwsAsync(
      database.read.rows((sql) => sql("counted")),
      { message: /\(a standby\)/ },
    );
  } finally {
    thaw();
  }
  await eventually("the server responds again", async () => (await insert(database)) !== undefined);
});

testPair.serial(
  "while there is no primary, a writer and its standby serve reads from the other server, and say what is wrong",
  async (t) => {
    const dir = await authorityDirectory(t, authority);
    const database = await emptyDatabase();
    const writer = await startNodeProcess(t, dir, ["--genesis", join(dir, "genesis.json"), "--database", database]);
    const standby = await startNodeProcess(t, await authorityDirectory(t, authority), [
      ...["--database", database, "--role", "standby"],
    ]);
    const nodes = [writer, standby];
    const clients = nodes.map(({ ready }) => createClient(ChainService, createGrpcTransport({ baseUrl: ready.rpc })));
    const transactions = [1, 2, 3, 4].map((nonce) =>
      signTransaction(testKey(2), nonce, createPublic(`p${nonce}`, `{"n":${nonce}}`)),
    );
    const [first, second, third, last] = transactions;
    const include = async (transaction: Transaction): Promise<void> => {
      await eventually("a transaction is accepted", async () => {
        await clients[0]!.submitTransaction({ transaction });
        return true;
      });
      await until(async () => (await blockOf(clients[0]!, transaction)) !== undefined);
    };
    await include(first!);
    await include(second!);
    await until(async () => (await clients[1]!.getHead({})).number === 2n);

    await pair.primary.crash("SIGKILL");
    // Each read goes to the database: its result was not read before.
    for (const [i, client] of clients.entries()) {
      await eventually("a block can be read", async () => {
        const { block } = await client.getBlock({ number: BigInt(i + 1) });
        return block !== undefined;
      });
      t.is((await client.getHead({})).number, 2n);
    }
    const accepted = await t.throwsAsync(clients[0]!.submitTransaction({ transaction: third! }));
    t.is(readFailure(accepted).reason, "DATABASE_UNAVAILABLE");
    const state =
      /\(none of its 2 servers is a primary that accepts writes; (server \d: (ECONNREFUSED|a standby)(; )?){2}\)\./;
    await eventually("the writer says what is wrong", async () =>
      state.test((await askJson<HealthBody>(writer.port, "/health")).subsystems["chain"]!.lastError!.message),
    );
    await eventually("the standby says what is wrong", async () =>
      state.test((await askJson<HealthBody>(standby.port, "/health")).subsystems["chain"]!.extra!.reason),
    );
    t.is((await ask(writer.port, "/health")).status, 503);
    t.is((await ask(standby.port, "/health")).status, 200, "it serves all that it served before");

    await pair.changePlaces("killed");
    await include(third!);
    await include(last!);
    await until(async () => (await clients[1]!.getHead({})).number === (await clients[0]!.getHead({})).number);
    for (const client of clients) {
      await until(async () => (await blockOf(client, last!)) !== undefined);
    }
    t.is((await ask(writer.port, "/health")).status, 200);
    await eventually(
      "the standby has nothing to say",
      async () => !state.test((await askJson<HealthBody>(standby.port, "/health")).subsystems["chain"]!.extra!.reason),
    );

    // A frozen primary keeps its connections, so that it is lost only after it has not responded for seconds.
    const thaw = pair.freezePrimary();
    try {
      const frozenMs = performance.now();
      const names = ["writer", "standby"];
      await Promise.all(
        clients.map(async (client, i) => {
          await eventually("a transaction can be read", async () => (await blockOf(client, second!)) !== undefined);
          const failedMs = performance.now() - frozenMs;
          t.log(`${names[i]} without reads for ${(failedMs / 1_000).toFixed(1)} s after the primary was frozen`);
        }),
      );
    } finally {
      thaw();
    }
    await eventually("the writer is healthy again", async () => (await ask(writer.port, "/health")).status === 200);
  },
);

/** Empties the database that all tests share, and returns its URLs. */
async function emptyDatabase(): Promise<string> {
  await withDatabase(pair.urls.join(","), ({ write }) =>
    write.runAll((sql) => [sql.raw("DROP SCHEMA public CASCADE"), sql.raw("CREATE SCHEMA public")]),
  );
  return pair.urls.join(",");
}

/** Returns the number of the block with a transaction; undefined if it is in none. */
async function blockOf(client: Client<typeof ChainService>, { body }: Transaction): Promise<bigint | undefined> {
  return (await client.getTransaction({ hash: sha256(body) })).blockNumber;
}

testPair.serial("20 switchovers under load lose no acknowledged block or transaction", async (t) => {
  t.timeout(360_000);
  const dir = await authorityDirectory(t, authority);
  const database = await emptyDatabase();
  const node = await startNodeProcess(t, dir, ["--genesis", join(dir, "genesis.json"), "--database", database]);
  const { withoutMs, blocks, transactions, ...wrong } = await changeUnderLoad({
    url: node.ready.rpc,
    changes: 20,
    change: changePlacesOf(pair),
  });
  t.deepEqual(wrong, { lost: [], doubled: [] });
  t.is(withoutMs.length, 20);
  const ascendingMs = withoutMs.toSorted((a, b) => a - b);
  const [middle, longest] = [ascendingMs[10]!, ascendingMs.at(-1)!].map(Math.round);
  t.log(`${transactions} transactions, ${blocks} blocks; without a block for ${middle} ms (p50), ${longest} ms (max)`);
});
