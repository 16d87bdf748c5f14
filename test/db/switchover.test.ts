/** Servers of PostgreSQL that change places under a node that writes. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { isDatabaseTrouble } from "../../src/base/database-trouble.js";
import { sha256 } from "../../src/base/hash.js";
import { readHeader } from "../../src/chain/transaction.js";
import type { Database } from "../../src/db/database.js";
import { openDatabase } from "../../src/db/open.js";
import type { Access } from "../../src/db/postgresql-servers.js";
import { testKey } from "../helpers/keys.js";
import { type End, type PostgresPair, startPostgresPair } from "../helpers/postgres-pair.js";
import { startNodeProcess } from "../helpers/start-cli.js";
import { authorityDirectory } from "../helpers/start-member.js";
import { createPublic, signTransaction } from "../helpers/transactions.js";
import type { Teardown } from "../helpers/teardown.js";
import { eventually, until } from "../helpers/until.js";
import { testUnless } from "../helpers/when.js";

const [authority, ...senders] = [1, 2, 3, 4, 5].map(testKey);
const started = await startPostgresPair();
const testPair = testUnless(typeof started === "string" ? started : undefined);
const pair = started as PostgresPair;
testPair.after(() => pair.remove());

const ends: readonly End[] = ["stopped", "stopped", "stopped", "aborted", "killed"];
const changes = 20;
/** Without a block for so long, there comes none. */
const patienceMs = 60_000;

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
    const reader = await open(t, [away, ...urls].join(","), "read");
    t.true(await isStandby(reader));

    await t.throwsAsync(openDatabase(pair.standbyUrl()), {
      message: /\/gatehouse is a standby, which takes no writes;/,
    });
    const { message } = await t.throwsAsync(openDatabase(`${away},${pair.standbyUrl()}`));
    t.is(
      message.replace(/\d+\/gatehouse \(a/, "PORT/gatehouse (a"),
      "None of the databases is a primary that takes writes: 127.0.0.1:9/gatehouse (ECONNREFUSED), " +
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
    t.is(withoutDisk, "PostgreSQL runs with fsync = off: a crash of its machine can lose or damage every block.");
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
      /^PostgreSQL runs with synchronous_commit = local, which does not wait until/,
    );
    await database.write.run((sql) => sql.raw("ALTER ROLE gatehouse RESET synchronous_commit"));
  },
);

testPair.serial("a server that has become a standby is left, also where its name alone is known", async (t) => {
  const database = await open(t, pair.primaryUrl());
  await insert(database);
  const isRefused = async (): Promise<boolean> => {
    const error: unknown = await insert(database).catch((thrown: unknown) => thrown);
    return isDatabaseTrouble(error) && (error as NodeJS.ErrnoException).code === "25006";
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
    t.true(isDatabaseTrouble(error));
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
  const dir = await authorityDirectory(t, authority!);
  const database = pair.urls.join(",");
  const node = await startNodeProcess(t, dir, ["--genesis", join(dir, "genesis.json"), "--database", database]);
  const client = createClient(ChainService, createGrpcTransport({ baseUrl: node.ready.rpc }));
  const taken = new Set<string>();
  const told = new Map<bigint, string>();
  const doubled: bigint[] = [];
  let isOver = false;

  /** Submits one transaction after the other, each until it is taken, and waits for a block now and then. */
  async function submitAs(key: (typeof senders)[number]): Promise<void> {
    for (let nonce = 1; !isOver; nonce++) {
      const transaction = signTransaction(key, nonce, createPublic(`p${nonce}`, `{"n":${nonce}}`));
      const hash = sha256(transaction.body);
      while (!isOver && !taken.has(hash)) {
        await client.submitTransaction({ transaction }).then(
          () => taken.add(hash),
          () => sleep(20),
        );
      }
      while (!isOver && nonce % 3 === 0 && !(await isIncluded(hash).catch(() => false))) {
        await sleep(20);
      }
    }
  }

  async function isIncluded(hash: string): Promise<boolean> {
    return (await client.getTransaction({ hash })).status === TransactionStatus.INCLUDED;
  }

  /** Looks for new blocks; each number has one hash. */
  async function watchHead(): Promise<void> {
    while (!isOver) {
      const { number, hash } = await client.getHead({});
      if ((told.get(number) ?? hash) !== hash) {
        doubled.push(number);
      }
      if (!told.has(number)) {
        told.set(number, hash);
        lastBlockMs = performance.now();
      }
      await sleep(5);
    }
  }

  let lastBlockMs = performance.now();
  const load = Promise.all([watchHead(), ...senders.map(submitAs)]);
  const withoutMs: number[] = [];
  await until(() => told.size > 3);
  for (let i = 0; i < changes; i++) {
    let [longestMs, enough] = [0, Infinity];
    const { size } = told;
    const change = pair.changePlaces(ends[i % ends.length]!).then(() => {
      enough = told.size + 2;
    });
    while (told.size < enough && longestMs < patienceMs) {
      longestMs = Math.max(longestMs, performance.now() - lastBlockMs);
      await sleep(5);
    }
    await change;
    t.true(told.size > size + 1, `no block after change ${i + 1}: ${node.stderr()}`);
    withoutMs.push(longestMs);
  }
  isOver = true;
  await load;

  await until(async () => {
    const fates = await Promise.all([...taken].map(isIncluded));
    return fates.every((included) => included);
  }, "all that was taken is in blocks");
  t.deepEqual(doubled, []);
  const hashes = new Map<bigint, string>();
  const { genesisHash } = await client.getHead({});
  let previous = genesisHash;
  for await (const { block } of client.listBlocks({ fromNumber: 1n })) {
    const header = readHeader(block!, { network: genesisHash });
    const hash = sha256(block!.header);
    t.is(header.previousHash, previous);
    t.is(header.number, BigInt(hashes.size + 1));
    hashes.set(header.number, hash);
    previous = hash;
  }
  for (const [number, hash] of told) {
    t.is(number === 0n ? hash : hashes.get(number), hash, `block ${number} is the one that was told of`);
  }
  withoutMs.sort((a, b) => a - b);
  const [middle, longest] = [withoutMs[changes / 2]!, withoutMs.at(-1)!].map(Math.round);
  t.log(
    `${taken.size} transactions, ${hashes.size} blocks; without a block for ${middle} ms (p50), ${longest} ms (max)`,
  );
});
