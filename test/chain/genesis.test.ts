import { genesisOf, testKey } from "../helpers/chain/keys.js";
import test from "ava";
import { writeFile } from "node:fs/promises";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { seedDatabase } from "../helpers/chain/seed.js";
import { startTestNode } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { hasTable } from "../../src/node/migrations/migrate.js";
import { firstStep } from "../../src/node/migrations/migrations.js";
import { openDatabase } from "../../src/db/open.js";
import { StartError } from "../../src/base/errors/start-error.js";

async function genesisFile(t: Teardown, content: string | Buffer): Promise<string> {
  const file = join(await temporaryDirectory(t), "genesis.json");
  await writeFile(file, content);
  return file;
}

test("the genesis file becomes block 0 once, and its text is served unchanged", async (t) => {
  const dir = await temporaryDirectory(t);
  const text = '{ "name": "a net",\n "supply": 1.0, "big": 12345678901234567890, "ключ": "\\u0000" }\n';
  const genesis = await genesisFile(t, text);
  const first = await startTestNode(t, { genesis }, dir);
  const { text: served } = await ask(first.port, "/genesis");
  t.true(served.includes('"supply": 1.0, "big": 12345678901234567890, "ключ": "\\u0000"'), served);
  await first.stop();

  const second = await startTestNode(t, {}, dir);
  t.is((await ask(second.port, "/genesis")).text, served);
  await second.stop();

  await t.notThrowsAsync(startTestNode(t, { genesis }, dir));
});

test("the hash of block 0 is the SHA-256 of the genesis text", async (t) => {
  const text = '{"timestamp": 1700000000000}';
  const dir = await temporaryDirectory(t);
  const node = await startTestNode(t, { genesis: await genesisFile(t, text) }, dir);
  await node.stop();
  await seedDatabase(dir, async ({ read }) => {
    const [block, ...others] = await read.rows<Record<string, unknown>>((sql) => sql("blocks"));
    t.like(block, {
      number: 0,
      hash: `0x${createHash("sha256").update(text).digest("hex")}`,
      timestamp_ms: 1_700_000_000_000,
      genesis: text,
    });
    t.deepEqual(others, []);
  });
});

test("rejects another genesis file later, even if it is the same JSON", async (t) => {
  const dir = await temporaryDirectory(t);
  await (await startTestNode(t, { genesis: await genesisFile(t, "{}") }, dir)).stop();
  const other = await genesisFile(t, "{ }");
  const { message } = await t.throwsAsync(startTestNode(t, { genesis: other }, dir), { instanceOf: StartError });
  t.regex(message, /^The genesis file \S+ \(0x[0-9a-f]{64}\) is not the one that this database was started with/);
});

test("a genesis that was changed in the database makes /health report the chain as failed", async (t) => {
  const dir = await temporaryDirectory(t);
  await (await startTestNode(t, { genesis: await genesisFile(t, '{"name":"a"}') }, dir)).stop();
  await seedDatabase(dir, async ({ write }) => {
    await write.run((sql) => sql("blocks").update({ genesis: '{"name":"b"}' }));
  });
  const { port } = await startTestNode(t, {}, dir);
  const { status, text } = await ask(port, "/health");
  t.is(status, 503);
  t.like(JSON.parse(text), { status: "failing", subsystems: { chain: { status: "failed" } } });
});

const broken: readonly (readonly [string, string | Buffer, RegExp])[] = [
  ["invalid JSON", "{", /is not JSON at line 1, column 2: the text ends\.$/],
  ["an array instead of an object", "[]", /is not usable: .*expected object/],
  ["an invalid timestamp", '{"timestamp": -1}', /is not usable at timestamp: /],
  ["an authority that is not a key", '{"authorities": ["0xAB"]}', /is not usable at authorities\.0: /],
  [
    "an authority with a key of small order",
    `{"authorities": ["0x01${"0".repeat(62)}"]}`,
    /is not usable at authorities\.0: the key is of small order, or not in canonical form/,
  ],
  ["invalid UTF-8", Buffer.from([0x7b, 0xff, 0x7d]), /is not UTF-8 text/],
  ["a NUL character", '{"a":"\0"}', /is not UTF-8 text/],
];
for (const [what, content, expected] of broken) {
  test(`rejects a genesis file with ${what}, and stores nothing`, async (t) => {
    const dir = await temporaryDirectory(t);
    const genesis = await genesisFile(t, content);
    const error = await t.throwsAsync(startTestNode(t, { genesis }, dir), { instanceOf: StartError });
    t.regex(error.message, expected);
    t.true(error.message.startsWith(`The genesis file ${genesis} `));
    t.false(error.message.includes("\n"));
    const { port } = await startTestNode(t, {}, dir);
    t.is((await askJson(port, "/health"))["status"], "dormant");
    t.is((await ask(port, "/genesis")).status, 503);
  });
}

test("an error about a missing or unreadable genesis file states its path", async (t) => {
  const dir = await temporaryDirectory(t);
  await t.throwsAsync(startTestNode(t, { genesis: join(dir, "none.json") }), {
    instanceOf: StartError,
    message: new RegExp(`^The genesis file ${dir}/none.json cannot be read: ENOENT`),
  });
  await t.throwsAsync(startTestNode(t, { genesis: dir }), { message: /cannot be read: EISDIR/ });
});

test("does not start with a chain of an older format, and leaves it unchanged", async (t) => {
  const dir = await temporaryDirectory(t);
  const genesis = await genesisFile(t, genesisOf(testKey(1)));
  await (await startTestNode(t, { genesis }, dir)).stop();
  await seedDatabase(dir, async (database) => {
    await database.write.runAll((sql) => [
      sql.schema.dropTable("tree_pages"),
      sql("schema_migrations").delete(),
      sql("schema_migrations").insert({ version: firstStep - 1, name: "an older format" }),
    ]);
  });
  const { message } = await t.throwsAsync(startTestNode(t, { genesis }, dir), { instanceOf: StartError });
  t.regex(message, /holds a chain of an older format, .* start with another --data-dir or --database/);
  const database = await openDatabase(`sqlite:${join(dir, "gatehouse.sqlite")}`);
  t.teardown(() => database.close());
  t.false(await hasTable(database.read, "tree_pages"));
});
