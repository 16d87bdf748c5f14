/** Corrupt rows: the node does not serve them, reports them, and its chain subsystem fails. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import type { Queries } from "../../src/db/queries/database.js";
import type { Engine } from "../../src/db/queries/dialects.js";
import { openDatabase } from "../../src/db/open.js";
import { openSqlite, prepareEngines } from "../helpers/databases/databases.js";
import { testKey } from "../helpers/chain/keys.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { runCli } from "../helpers/nodes/run-cli.js";
import { authorityDirectory, startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { alice, authority, pathsOf, type StoredChain, storeChain } from "../helpers/chain/stored-chain.js";
import { fileTeardown, type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { eventually, until } from "../helpers/nodes/until.js";

const engines = await prepareEngines();

const program = (address: string): RegExp => new RegExp(`^The storage program ${address} in the database is corrupt`);
const anyProgram = program("stor-[0-9a-f]{40}");
const unsigned = (number: number): RegExp =>
  new RegExp(`^Block ${number} in the database is not the one that was signed`);
const otherTransactions = /^Block 1 in the database does not hold the transactions that its header names/;

/**
 * Values in which eight bytes are changed: column, condition that selects the row, route that responds with an error
 * afterwards, and message that health and `verify-data` report. Capitalized words stand for values of the chain.
 */
const corruptions: readonly (readonly [column: string, where: string, path: string, message: RegExp])[] = [
  ["blocks.header", "number = 2", "/chain/blocks/2", unsigned(2)],
  ["blocks.signature", "number = 3", "/chain/blocks/hash/BLOCK3", unsigned(3)],
  ["transactions.body", "block_number = 1", "/chain/blocks/1", otherTransactions],
  ["transactions.signature", "block_number = 1", "/chain/blocks/1", otherTransactions],
  ["program_documents.data", "address = 'SMALL'", "/storage-program/SMALL", anyProgram],
  [
    "program_fields.value",
    `address = 'SMALL' AND name_json = '"title"'`,
    "/storage-program/SMALL/field/title",
    anyProgram,
  ],
  ["program_fields.value", `address = 'LARGE' AND name_json = '"title"'`, "/storage-program/LARGE/all", anyProgram],
  [
    "program_chunks.text",
    "address = 'LARGE' AND position = 3145728",
    "/storage-program/LARGE/field/list/item/3000",
    anyProgram,
  ],
  ["programs.owner", "address = 'SMALL'", "/storage-program/SMALL/field/title", anyProgram],
  ["programs.name", "address = 'EMPTY'", "/storage-program/search?q=one", anyProgram],
  ["programs.access", "address = 'SMALL'", "/storage-program/SMALL/all", anyProgram],
  [
    "tree_pages.page",
    "tree = 'commitments' AND path = '0000'",
    "/zk/merkle/proof/COMMITMENT",
    /^A page of the commitment tree in the database is corrupt/,
  ],
  [
    "merkle_roots.root",
    "block_number = 4",
    "/zk/merkle-root",
    /^The root of the commitment tree after block 4 in the database is corrupt/,
  ],
  [
    "nullifiers.transaction_hash",
    "1 = 1",
    "/zk/nullifier/NULLIFIER",
    /^The nullifier 0x[0-9a-f]{64} in the database is corrupt/,
  ],
];

/** Replaces the capitalized words of {@link corruptions}. */
function withValues(text: string, { small, large, empty, nullifier, commitments, blockHashes }: StoredChain): string {
  return text
    .replace("SMALL", small)
    .replace("LARGE", large)
    .replace("EMPTY", empty)
    .replace("NULLIFIER", nullifier)
    .replace("COMMITMENT", commitments[0]!)
    .replace("BLOCK3", blockHashes[2]!);
}

/** Returns a copy in which the eight bytes in the middle are changed. */
function flip(bytes: Buffer, isText: boolean): Buffer {
  const flipped = Buffer.from(bytes);
  const start = Math.floor(flipped.length / 2) - 4;
  for (let i = start; i < start + 8; i++) {
    // Text becomes other ASCII letters.
    flipped[i] = isText ? 0x41 + (flipped[i]! % 16) : flipped[i]! ^ 0xff;
  }
  return flipped;
}

/** One stored chain for each engine. It is created once; every test gets it undamaged. */
const chains = new Map<Engine, Promise<{ readonly url: string; readonly stored: StoredChain }>>();
const file = fileTeardown();

async function chainOf(t: Teardown, engine: Engine): Promise<{ readonly url: string; readonly stored: StoredChain }> {
  let chain = chains.get(engine);
  if (chain === undefined) {
    chain = engines.createUrl(file, engine).then(async (url) => ({ url, stored: await storeChain(url) }));
    chains.set(engine, chain);
  }
  const { url, stored } = await chain;
  if (engine === "postgresql") {
    return { url, stored };
  }
  const copy = join(await temporaryDirectory(t), "copy.sqlite");
  await copyFile(url.slice("sqlite:".length), copy);
  return { url: `sqlite:${copy}`, stored };
}

/** Corrupts a row: in the file, so that SQLite does not notice, or with an UPDATE on PostgreSQL. */
async function corrupt(t: Teardown, url: string, name: string, condition: string): Promise<void> {
  const [table = "", column = ""] = name.split(".");
  const read = async (db: Queries): Promise<string | Buffer> => {
    const [row] = await db.rows<Record<string, string | Buffer>>((sql) =>
      sql.raw(`SELECT ${column} AS value FROM ${table} WHERE ${condition}`),
    );
    return row!["value"]!;
  };
  if (url.startsWith("sqlite:")) {
    const path = url.slice("sqlite:".length);
    const database = await openDatabase(url);
    const value = await read(database.read);
    await database.close();
    const bytes = await readFile(path);
    const [old, changed] = [
      Buffer.from(value as string),
      flip(Buffer.from(value as string), typeof value === "string"),
    ];
    const start = Math.floor(old.length / 2) - 4;
    // A long value spans several pages, so only its middle is searched for.
    const [from, to] = [Math.max(0, start - 16), Math.min(old.length, start + 24)];
    const middle = old.subarray(from, to);
    // The value may occur several times, in an index for example. Only the occurrence in the row changes the result.
    for (let at = bytes.indexOf(middle); at >= 0; at = bytes.indexOf(middle, at + 1)) {
      const attempt = Buffer.from(bytes);
      changed.copy(attempt, at + start - from, start, start + 8);
      await writeFile(path, attempt);
      const client = openSqlite(t, path);
      const [row] = (await client
        .raw(`SELECT +${column} AS value FROM ${table} NOT INDEXED WHERE ${condition}`)
        .catch(() => [])) as {
        value: string | Buffer;
      }[];
      await client.destroy();
      if (row !== undefined && Buffer.from(row.value as string).equals(changed)) {
        return;
      }
    }
    throw new Error(`The value was not found in the file: ${table}.${column}`);
  }
  const database = await openDatabase(url);
  const value = await read(database.read);
  const changed = flip(Buffer.from(value as string), typeof value === "string");
  const newValue = typeof value === "string" ? changed.toString("latin1") : changed;
  await database.write.run((sql) => sql.raw(`UPDATE ${table} SET ${column} = ? WHERE ${condition}`, [newValue]));
  // Teardowns run in reverse order, so the nodes have stopped by then.
  t.teardown(async () => {
    const again = await openDatabase(url);
    await again.write.run((sql) => sql.raw(`UPDATE ${table} SET ${column} = ? WHERE ${column} = ?`, [value, newValue]));
    await again.close();
  });
  await database.close();
}

interface Health {
  readonly status: string;
  readonly subsystems: {
    readonly chain: { readonly status: string; readonly lastError: { readonly message: string } };
  };
}

async function metricsOf(node: TestNode): Promise<string> {
  return (await ask(node.subsystems.get("metrics").port!, "/metrics")).text;
}

/** Returns true once the background verification of all data has completed. */
async function hasVerifiedAll(node: TestNode): Promise<boolean> {
  return !/verify_completed_seconds NaN/i.test(await metricsOf(node));
}

for (const engine of engines.names) {
  for (const [column, where, path, message] of corruptions) {
    test.serial(`${engine}: reports ${column} where ${where} with changed bytes, and does not serve it`, async (t) => {
      const { url, stored } = await chainOf(t, engine);
      const before = await runCli(["verify-data", "--database", url, "--json"]);
      t.is(before.code, 0, before.stdout + before.stderr);
      await corrupt(t, url, column, withValues(where, stored));

      const { code, stdout } = await runCli(["verify-data", "--database", url]);
      t.is(code, 1);
      t.true(
        stdout.split("\n").some((line) => message.test(line)),
        stdout,
      );

      const dir = await authorityDirectory(t, authority);
      const node = await startTestNode(t, { genesis: "genesis.json", database: url }, dir);
      const answer = await ask(node.port, withValues(path, stored));
      t.is(answer.status, 500, answer.text);
      t.deepEqual(JSON.parse(answer.text), {
        success: false,
        error: "This record is corrupt on this node; use another node.",
        errorCode: "DATABASE_DAMAGED",
      });
      const health = await askJson<Health>(node.port, "/health");
      t.is(health.status, "failing");
      t.is(health.subsystems.chain.status, "failed");
      t.regex(health.subsystems.chain.lastError.message, message);
    });
  }

  test.serial(`${engine}: produces no block from a corrupt document, and recovers once it is repaired`, async (t) => {
    const url = await engines.createUrl(t, engine);
    const { small } = await storeChain(url);
    const dir = await authorityDirectory(t, authority);
    const flags = { genesis: "genesis.json", database: url, "metrics-enabled": true, "metrics-port": "0" };
    const node = await startTestNode(t, flags, dir);
    // The background verification is over, so only block production can find the corruption.
    await until(() => hasVerifiedAll(node));
    const client = createClient(ChainService, createGrpcTransport({ baseUrl: node.rpcUrl }));
    const { number: before } = await client.getHead({});
    const database = await openDatabase(url);
    t.teardown(() => database.close());
    const [row] = await database.read.rows<{ data: string }>((sql) =>
      sql("program_documents").where({ address: small }),
    );
    const write = (data: string): Promise<unknown> =>
      database.write.run((sql) => sql("program_documents").where({ address: small }).update({ data }));
    await write(row!.data.replace("small", "other"));

    const operation = { case: "setField" as const, value: { storageAddress: small, field: "late", value: "1" } };
    const change = signTransaction(alice, 1_000, operation);
    await client.submitTransaction({ transaction: change });
    await until(async () => (await askJson<Health>(node.port, "/health")).status === "failing");
    for (let nonce = 1; nonce <= 5; nonce++) {
      const other = signTransaction(testKey(3), nonce, createPublic(`other${nonce}`, "{}"));
      await client.submitTransaction({ transaction: other }).catch((error: unknown) => {
        t.is(readFailure(error).reason, "DATABASE_DAMAGED");
      });
      t.is((await ask(node.port, "/chain/head")).status, 200);
      const { status, subsystems } = await askJson<Health>(node.port, "/health");
      t.is(status, "failing");
      t.regex(subsystems.chain.lastError.message, program(small));
    }
    t.is((await client.getHead({})).number, before);

    await write(row!.data);
    const hash = sha256(change.body);
    const isIncluded = async (): Promise<boolean> =>
      (await client.getTransaction({ hash })).status === TransactionStatus.INCLUDED;
    await eventually("the transaction is in a block", isIncluded);
    await until(async () => (await askJson<Health>(node.port, "/health")).subsystems.chain.status === "ready");
  });

  test.serial(`${engine}: the background verification finds corruption and repairs without any request`, async (t) => {
    const { url, stored } = await chainOf(t, engine);
    const setDocument = async (text: string): Promise<void> => {
      const database = await openDatabase(url);
      await database.write.run((sql) =>
        sql("program_documents").where({ address: stored.small }).update({ data: text }),
      );
      await database.close();
    };
    const dir = await authorityDirectory(t, authority);
    const flags = { genesis: "genesis.json", database: url };
    const first = await startTestNode(t, { ...flags, "metrics-enabled": true, "metrics-port": "0" }, dir);
    await until(() => hasVerifiedAll(first));
    const page = await metricsOf(first);
    t.regex(page, /gatehouse_verify_blocks\{state="verified"\} 4\n/);
    t.regex(page, /gatehouse_verify_blocks\{state="total"\} 4\n/);
    t.regex(page, /gatehouse_verify_findings 0\n/);
    const { text } = await ask(first.port, `/storage-program/${stored.small}/all`);
    await first.stop();

    await setDocument('{"title": "Another one"}');
    const node = await startTestNode(t, flags, dir);
    await until(async () => (await askJson<Health>(node.port, "/health")).status === "failing");
    const { chain } = (await askJson<Health>(node.port, "/health")).subsystems;
    t.regex(chain.lastError.message, program(stored.small));
    t.is((await ask(node.port, "/storage-program/stor-0000000000000000000000000000000000000000")).status, 500);

    const { data } = JSON.parse(text) as { data: unknown };
    t.truthy(data);
    await setDocument(/"data":(.*)\}$/s.exec(text)![1]!);
    t.is((await ask(node.port, `/storage-program/${stored.small}/all`)).text, text);
    await until(async () => (await askJson<Health>(node.port, "/health")).subsystems.chain.status === "ready");
  });
}

test.serial("serves all paths while nothing is corrupt", async (t) => {
  const { url, stored } = await chainOf(t, "sqlite");
  const dir = await authorityDirectory(t, authority);
  const node = await startTestNode(t, { genesis: "genesis.json", database: url }, dir);
  for (const path of pathsOf(stored)) {
    const { status, text } = await ask(node.port, path);
    t.is(status, 200, `${path}: ${text}`);
  }
});

test.serial("verify-data reports what it verified, and changes nothing", async (t) => {
  const none = await runCli(["verify-data", "--database", await engines.createUrl(t, "sqlite")]);
  t.is(none.code, 2);
  t.regex(none.stderr, /^gatehouse: There is no database at /);
  const { url } = await chainOf(t, "sqlite");
  const path = url.slice("sqlite:".length);
  const before = await readFile(path);
  const { code, stdout } = await runCli(["verify-data", "--database", url]);
  t.is(code, 0, stdout);
  t.regex(
    stdout,
    /^Verified 4 blocks, 3 roots of the commitment tree, \d+ nodes of the tree, 1 nullifiers, \d+ senders, 3 storage programs: no errors\.\n$/,
  );
  t.true(before.equals(await readFile(path)));
  const json = JSON.parse((await runCli(["verify-data", "--database", url, "--json"])).stdout) as unknown;
  t.like(json, { ok: true, blocks: 4, programs: 3, findings: [] });
  const empty = join(await authorityDirectory(t, authority), "none.sqlite");
  await writeFile(empty, "no database at all, but longer than the header of one ".repeat(50));
  const bad = await runCli(["verify-data", "--database", `sqlite:${empty}`]);
  t.is(bad.code, 2);
});
