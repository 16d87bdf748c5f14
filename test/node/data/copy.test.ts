/** `gatehouse database copy`: between engines, resumed after a kill, and unusable by a node before it is complete. */
import test from "ava";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createPublic, signTransaction } from "../../helpers/chain/transactions.js";
import { stat } from "node:fs/promises";
import { AccessMode } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { copyDatabase } from "../../../src/node/data/copies/copy.js";
import { chainTables, mempoolTables } from "../../../src/node/data/copies/copied-tables.js";
import type { Database } from "../../../src/db/queries/database.js";
import type { Engine } from "../../../src/db/queries/dialects.js";
import { copyNodeDatabase } from "../../../src/node/data/copy-database.js";
import { withDatabase } from "../../../src/db/open.js";
import { openChain } from "../../helpers/chain/chain.js";
import { openSqlite, prepareEngines } from "../../helpers/databases/databases.js";
import { testKey } from "../../helpers/chain/keys.js";
import { ask } from "../../helpers/wire/plain-client.js";
import { cleanEnvironment, cliPath, runCli } from "../../helpers/nodes/run-cli.js";
import { authorityDirectory, startTestNode } from "../../helpers/nodes/start-node.js";
import { alice, authority, pathsOf, type StoredChain, storeChain } from "../../helpers/chain/stored-chain.js";
import type { Teardown } from "../../helpers/nodes/teardown.js";

const engines = await prepareEngines();

const rejected = `0x${"5".repeat(64)}`;
const [bob, carol] = [testKey(5), testKey(6)];

/** Fills a database with a sample chain, fork evidence, a peer and a rejected transaction. */
async function store(url: string): Promise<StoredChain> {
  const stored = await storeChain(url);
  await withDatabase(url, async (database) => {
    const bytes = Buffer.from([0, 1, 255]);
    const headers = { header: bytes, signature: bytes, other_header: bytes, other_signature: bytes };
    await database.write.run((sql) =>
      sql("fork_evidence").insert([
        { identity: alice.publicKey, block_number: 1, ...headers, seen_ms: 1_795_293_736_174, settled: true },
        { identity: alice.publicKey, block_number: 2, ...headers, seen_ms: 1_795_293_736_174, settled: false },
      ]),
    );
    await database.write.run((sql) =>
      sql("peers").insert({
        ...{ id: 7, endpoint: "https://127.0.0.1:9", origin: "file", failures: 0, next_try_ms: 0 },
        verified_ms: 1_795_293_736_174,
      }),
    );
    const chain = await openChain(database, [authority]);
    const access = { mode: AccessMode.RESTRICTED, allowed: [carol.publicKey], blacklisted: [alice.publicKey] };
    await chain.submit(signTransaction(bob, 1, { case: "createProgram", value: { programName: "for one", access } }));
    await chain.produceBlock(authority);
    const [rejectedMs, expiresMs] = [Date.now(), Date.now() + 3_600_000];
    await database.mempool.write.run((sql) =>
      sql("rejected_transactions").insert({
        ...{ hash: rejected, reason: 'It was "late", é\n.', rejected_ms: rejectedMs, expires_ms: expiresMs },
      }),
    );
  });
  return stored;
}

/** Starts a node over the database and returns its responses to the paths of the sample chain. */
async function responsesOf(t: Teardown, database: string, stored: StoredChain): Promise<Record<string, string>> {
  const node = await startTestNode(t, { database });
  const paths = [...pathsOf(stored), `/chain/transactions/${rejected}`];
  const responses = await Promise.all(paths.map(async (path) => [path, (await ask(node.port, path)).text] as const));
  await node.stop();
  return Object.fromEntries(responses);
}

const copy = (from: string, to: string, ...flags: string[]) => runCli(["database", "copy", from, to, ...flags]);
const otherThan = (engine: Engine): Engine =>
  engine === "sqlite" && engines.names.includes("postgresql") ? "postgresql" : "sqlite";

for (const engine of engines.names) {
  const other = otherThan(engine);

  test.serial(
    `${engine} to ${other}: a node with the copy returns the same responses and produces blocks`,
    async (t) => {
      const from = await engines.createUrl(t, engine);
      const to = await engines.createUrl(t, other);
      const stored = await store(from);
      // Copies before a node starts over the source, which would change the source.
      const copied = await copy(from, to, "--json");
      t.is(copied.code, 0, copied.stderr);
      const { ok, resumed, tables } = JSON.parse(copied.stdout) as {
        ok: boolean;
        resumed: boolean;
        tables: Record<string, number>;
      };
      t.true(ok);
      t.false(resumed);
      t.like(tables, {
        blocks: stored.blocks + 2,
        program_readers: 2,
        rejected_transactions: 1,
        fork_evidence: 2,
        writer_lease: 1,
      });
      t.is((await runCli(["verify-data", "--database", to])).code, 0);
      const again = await copy(from, to);
      t.is(again.code, 1);
      t.is(again.stderr, "gatehouse: The target is not empty; give an empty database.\n");

      await withDatabase(to, async (database) => {
        const [first, second] = await database.read.rows<{ settled: boolean | number }>((sql) =>
          sql("fork_evidence").orderBy("block_number").select("settled"),
        );
        t.deepEqual([Boolean(first!.settled), Boolean(second!.settled)], [true, false]);
      });
      const responses = await responsesOf(t, to, stored);
      t.regex(responses[`/chain/transactions/${rejected}`]!, /It was \\"late\\"/);
      t.deepEqual(responses, await responsesOf(t, from, stored));
      await withDatabase(to, async (database) => {
        // New rows get ids after those of the copied rows.
        await database.write.run((sql) =>
          sql("peers").insert({ endpoint: "https://127.0.0.1:10", origin: "file", failures: 0, next_try_ms: 0 }),
        );
        const chain = await openChain(database, [authority]);
        await chain.submit(signTransaction(carol, 1, createPublic("after the copy", "{}")));
        await chain.produceBlock(authority);
        t.is(
          (await database.read.first<{ name: string }>((sql) => sql("programs").orderBy("id", "desc").select("name")))!
            .name,
          "after the copy",
        );
      });
    },
  );

  test.serial(
    `${engine} to ${other}: a killed copy is rejected as a database, and a second copy resumes`,
    async (t) => {
      const from = await engines.createUrl(t, engine);
      const to = await engines.createUrl(t, other);
      await storeChain(from);
      // Enough fields for many batches.
      const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`field ${i}`, i]));
      await withDatabase(from, async (database) => {
        const chain = await openChain(database, [authority]);
        await chain.submit(signTransaction(bob, 1, createPublic("wide", JSON.stringify(many))));
        await chain.produceBlock(authority);
      });
      const child = spawn(process.execPath, [cliPath, "database", "copy", from, to], { env: cleanEnvironment() });
      t.teardown(() => child.kill("SIGKILL"));
      const ended = once(child, "close");
      await Promise.race([once(child.stderr, "data"), ended]);
      child.kill("SIGKILL");
      t.deepEqual(await ended, [null, "SIGKILL"]);

      const dir = await authorityDirectory(t, authority);
      const unfinished = /^The database is an incomplete copy; run gatehouse database copy again/;
      await t.throwsAsync(startTestNode(t, { database: to }, dir), { message: unfinished });
      t.is((await runCli(["verify-data", "--database", to])).code, 2);
      t.regex((await copy(to, from)).stderr, /incomplete copy/);
      const resumed = await copy(from, to, "--json");
      t.is(resumed.code, 0, resumed.stderr);
      t.true((JSON.parse(resumed.stdout) as { resumed: boolean }).resumed);
      t.is((await runCli(["verify-data", "--database", to])).code, 0);
      await startTestNode(t, { database: to }, dir);
    },
  );

  test.serial(
    `${engine} to ${other}: rejects the database of a running node, and a source that was written to during the copy`,
    async (t) => {
      const dir = await authorityDirectory(t, authority);
      const from = await engines.createUrl(t, engine);
      const to = await engines.createUrl(t, other);
      const flags = { database: from, genesis: "genesis.json" };
      const node = await startTestNode(t, flags, dir);
      const live = await copy(from, to);
      t.is(live.code, 1);
      t.regex(live.stderr, /^gatehouse: Another node, process \d+ on .* writes to .*; stop it first\.\n$/);
      t.notRegex(live.stderr, /:gatehouse@/, "the password is shown");
      await node.stop();

      if (engine === "postgresql") {
        // A SQLite file is locked during the copy. A write to a server is detected at the end.
        await withDatabase(from, async ({ write }) => {
          let writing: Promise<unknown> | undefined;
          const onProgress = (): void => {
            writing ??= write.run((sql) => sql("writer_lease").increment("epoch"));
          };
          const otherTarget = await engines.createUrl(t, other);
          await t.throwsAsync(copyNodeDatabase({ from, to: otherTarget, onProgress }), {
            message: /^A node wrote to .* meanwhile, so the copy is outdated/,
          });
          await writing;
        });
      }
      const onProgress = (): void => {
        throw new Error("Stop here.");
      };
      await t.throwsAsync(copyNodeDatabase({ from, to, onProgress }), { message: "Stop here." });
      await (await startTestNode(t, flags, dir)).stop();
      const changed = await copy(from, to);
      t.is(changed.code, 1);
      t.regex(changed.stderr, /incomplete copy of another database, or of an earlier state of this one/);
    },
  );
}

test("the final comparison detects rows of the copy that differ from the source", async (t) => {
  const from = await engines.createUrl(t, "sqlite");
  await storeChain(from);
  for (const change of [
    "UPDATE senders SET nonce = nonce + 1",
    "DELETE FROM program_chunks",
    "UPDATE transactions SET body = x'00' WHERE position = 0",
  ]) {
    const to = await engines.createUrl(t, "sqlite");
    const sqlite = openSqlite(t, to.replace("sqlite:", ""));
    // Changes the copy between the last row and the comparison.
    const confirm = async (): Promise<void> => void (await sqlite.raw(change));
    const deps = { sourceState: "{}", onProgress: () => undefined, confirm };
    const copying = withDatabase(from, (source) =>
      withDatabase(to, (target) => copyDatabase({ source, target, ...deps })),
    );
    await t.throwsAsync(copying, {
      message: /^The table (senders|program_chunks|transactions) of the copy differs from the source/,
    });
    await t.throwsAsync(startTestNode(t, { database: to }), { message: /incomplete copy/ });
  }
});

test("rejects a missing source, and a URL of an unknown kind", async (t) => {
  const missing = (await engines.createUrl(t, "sqlite")).replace("sqlite:", "");
  const none = await copy(missing, `${missing}-copy`);
  t.is(none.code, 1);
  t.is(none.stderr, `gatehouse: There is no database at ${missing}; give the database of a node.\n`);
  await t.throwsAsync(stat(missing), undefined, "a file was created");
  const wrong = await copy("mysql://a/b", missing);
  t.is(wrong.code, 2);
  t.regex(wrong.stderr, /^gatehouse: FROM must be sqlite:PATH or postgres:/);
});

for (const engine of engines.names) {
  test(`${engine}: every table of the schema is copied, or filled by the migrations`, async (t) => {
    const database = await engines.open(t, engine);
    const list = async ({ read }: Pick<Database, "read">): Promise<string[]> => {
      const rows = await read.rows<{ name: string }>((sql) =>
        engine === "sqlite"
          ? sql("sqlite_master").where("type", "table").select("name")
          : sql.raw("SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()"),
      );
      return rows.map(({ name }) => name).filter((name) => !/^(sqlite_|program_names|schema_|mempool_)/.test(name));
    };
    const found = new Set([...(await list(database)), ...(await list(database.mempool))]);
    t.deepEqual([...found].sort(), [...chainTables, ...mempoolTables].map(({ name }) => name).sort());
  });
}
