/** Servers of PostgreSQL that change places under a node that writes. */
import { join } from "node:path";
import { isDatabaseError } from "../../src/base/errors/database-error-kind.js";
import type { Database } from "../../src/db/queries/database.js";
import { openDatabase } from "../../src/db/open.js";
import type { Access } from "../../src/db/postgresql/postgresql-servers.js";
import { testKey } from "../helpers/chain/keys.js";
import { type PostgresPair, startPostgresPair } from "../helpers/databases/postgres-pair.js";
import { startNodeProcess } from "../helpers/nodes/start-cli.js";
import { authorityDirectory } from "../helpers/nodes/start-member.js";
import { changeUnderLoad } from "../helpers/databases/switchovers.js";
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
  "a writer is at the primary, wherever that is named, and a reader at a standby while there is one",
  async (t) => {
    const { urls } = pair;
    const away = "postgres://gatehouse:gatehouse@127.0.0.1:9/gatehouse";
    const writer = await open(t, [...urls.toReversed(), away].join(","));
    t.false(await isStandby(writer));
    await writer.write.run((sql) => sql.schema.createTable("counted", (table) => table.integer("n")));
    // A standby that takes more than a second to answer is passed over.
    let reader!: Database;
    await until(async () => {
      reader = await open(t, [away, ...urls].join(","), "read");
      return (await isStandby(reader)) === true;
    });

    await t.throwsAsync(openDatabase(pair.standbyUrl()), {
      message: /\/gatehouse is a standby, which accepts no writes;/,
    });
    const { message } = await t.throwsAsync(openDatabase(`${away},${pair.standbyUrl()}`));
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
  "what is acknowledged waits for the disk, whatever the role has; what does not help is told of",
  async (t) => {
    const database = await open(t, pair.urls.join(","));
    const waits = async ({ write }: Database): Promise<unknown> =>
      (await write.rows((sql) => sql.raw("SELECT current_setting('synchronous_commit') AS waits")))[0];
    t.deepEqual(await waits(database), { waits: "on" });
    const [withoutDisk, ...others] = await database.whatMayBeLost();
    t.is(withoutDisk, "PostgreSQL runs with fsync = off: a crash of its machine can lose or corrupt every block.");
    t.deepEqual(others, []);

    const set = (value: string): Promise<unknown> =>
      database.write.run((sql) => sql.raw(`ALTER ROLE gatehouse SET synchronous_commit = ${value}`));
    await set("off");
    const stricter = await open(t, pair.urls.join(","));
    t.deepEqual(await waits(stricter), { waits: "on" });
    await set("local");
    const own = await open(t, pair.urls.join(","));
    t.deepEqual(await waits(own), { waits: "local" });
    t.regex(
      (await own.whatMayBeLost())[1]!,
      /^PostgreSQL runs with synchronous_commit = local, which does not wait for/,
    );
    await database.write.run((sql) => sql.raw("ALTER ROLE gatehouse RESET synchronous_commit"));
  },
);

testPair.serial("a server that has become a standby is left, also where its name alone is known", async (t) => {
  const database = await open(t, pair.primaryUrl());
  await insert(database);
  const isRefused = async (): Promise<boolean> => {
    const error: unknown = await insert(database).catch((thrown: unknown) => thrown);
    return isDatabaseError(error) && (error as NodeJS.ErrnoException).code === "25006";
  };
  await pair.changePlaces("stopped");
  await until(isRefused, "the standby is found out");
  await pair.changePlaces("stopped");
  await eventually("it is the primary again", async () => (await insert(database)) !== undefined);
  t.false(await isStandby(database));
});

testPair.serial("a server that has gone without a word is left within seconds", async (t) => {
  const database = await open(t, pair.urls.join(","));
  await insert(database);
  // The connection is there: what is asked next goes out, and no answer comes.
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
  await eventually("it is back", async () => (await insert(database)) !== undefined);
});

testPair.serial("twenty times the servers change places, and nothing that was told of is lost", async (t) => {
  t.timeout(360_000);
  const dir = await authorityDirectory(t, authority);
  const database = pair.urls.join(",");
  const node = await startNodeProcess(t, dir, ["--genesis", join(dir, "genesis.json"), "--database", database]);
  const { withoutMs, blocks, transactions, ...wrong } = await changeUnderLoad({
    pair,
    url: node.ready.rpc,
    changes: 20,
  });
  t.deepEqual(wrong, { lost: [], doubled: [] });
  t.is(withoutMs.length, 20);
  const [middle, longest] = [withoutMs[10]!, withoutMs.at(-1)!].map(Math.round);
  t.log(`${transactions} transactions, ${blocks} blocks; without a block for ${middle} ms (p50), ${longest} ms (max)`);
});
