import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseError } from "../../../src/db/queries/database.js";
import { openDatabase } from "../../../src/db/open.js";
import { hasTable, migrate } from "../../../src/node/migrations/migrate.js";
import { firstStep, migrations } from "../../../src/node/migrations/migrations.js";
import { insertRows } from "../../../src/db/rows/bulk-changes.js";
import type { PageRow } from "../../../src/tree/page-store.js";
import { growTree } from "../../../src/zk/fold.js";
import { nodeIn } from "../../../src/zk/node-store.js";
import { toHex } from "../../../src/zk/poseidon.js";
import { createTreeChanges } from "../../../src/zk/tree-store.js";
import { inlinePool } from "../../helpers/chain/chain.js";
import { prepareEngines } from "../../helpers/databases/databases.js";
import { StartError } from "../../../src/base/errors/start-error.js";
import { startTestNode } from "../../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../../helpers/nodes/teardown.js";

const engines = await prepareEngines();

async function openTestDatabase(t: Teardown, file: string) {
  const database = await openDatabase(`sqlite:${file}`);
  t.teardown(() => database.close());
  return database;
}

test("migrates a new database with every step, and changes nothing in a second run", async (t) => {
  const database = await openTestDatabase(t, join(await temporaryDirectory(t), "new", "a.sqlite"));
  await migrate(database);
  const steps = () => database.read.rows((sql) => sql("schema_migrations").orderBy("version"));
  const applied = await steps();
  await migrate(database);
  t.deepEqual(await steps(), applied);
  t.is(applied.length, migrations.length);
});

test("rolls back all steps if one of them fails", async (t) => {
  const database = await openTestDatabase(t, join(await temporaryDirectory(t), "a.sqlite"));
  await database.write.run((sql) => sql.schema.createTable("nullifiers", (table) => table.increments()));
  await t.throwsAsync(migrate(database));
  const tables = await database.read.rows<{ name: string }>((sql) =>
    sql("sqlite_master").where("type", "table").select("name"),
  );
  t.deepEqual(
    tables.map(({ name }) => name).filter((name) => !name.startsWith("sqlite_")),
    ["nullifiers"],
  );
});

test("rejects a database of a newer version", async (t) => {
  const file = join(await temporaryDirectory(t), "a.sqlite");
  const database = await openTestDatabase(t, file);
  await migrate(database);
  const newer = { version: firstStep + migrations.length, name: "of tomorrow" };
  await database.write.run((sql) => sql("schema_migrations").insert(newer));
  const { message } = await t.throwsAsync(migrate(database), { instanceOf: DatabaseError });
  t.regex(message, /created by a newer version of Gatehouse/);
  await t.throwsAsync(startTestNode(t, { database: `sqlite:${file}` }), { instanceOf: StartError, message });
});

test("rejects a file that is not a database", async (t) => {
  const file = join(await temporaryDirectory(t), "a.sqlite");
  await writeFile(file, "not a database, but longer than the header of one ".repeat(20));
  await t.throwsAsync(startTestNode(t, { database: `sqlite:${file}` }), {
    instanceOf: StartError,
    message: `The file ${file} is not a usable SQLite database; restore it from a backup, or give another --database.`,
  });
});

test("removes the values of a query from its error", async (t) => {
  const database = await openTestDatabase(t, join(await temporaryDirectory(t), "a.sqlite"));
  await migrate(database);
  const row = { hash: "0x1", block_number: 1, transaction_hash: "a secret" };
  await database.write.run((sql) => sql("nullifiers").insert(row));
  const error = await t.throwsAsync(database.write.run((sql) => sql("nullifiers").insert(row)));
  t.regex(error.message, /^SQLITE_CONSTRAINT: UNIQUE constraint failed: nullifiers\.hash$/);
  t.false(String(error.stack).includes("a secret"));
});

for (const engine of engines.names) {
  test(`${engine}: packs the nodes of the commitment tree into pages, and leaves out a wrong one`, async (t) => {
    const database = await engines.open(t, engine);
    const pages = () => database.read.rows<PageRow>((sql) => sql("tree_pages").orderBy("path"));
    const leaves = Array.from({ length: 300 }, (_, i) => BigInt(i + 1));
    const { runs } = await growTree(0, {}, leaves, inlinePool.foldAll);
    await createTreeChanges(database.write).insertNodes(runs);
    const packed = await pages();
    t.is(packed.length, 22, "19 of 16 leaves each, 2 of 256, 1 of 4,096");

    const restoreNodes = async (): Promise<void> => {
      await database.write.runAll((sql) => [
        sql("tree_pages").delete(),
        sql("schema_migrations").where("version", ">", firstStep).delete(),
        sql.schema.createTable("merkle_nodes", (table) => {
          table.integer("id").primary();
          table.binary("hash").notNullable();
        }),
      ]);
      const rows = runs.flatMap(({ level, position, hashes }) =>
        hashes.map((hash, i) => [level * 2 ** 21 + position + i, toHex(hash).slice(2)]),
      );
      await insertRows(database.write, "merkle_nodes", { id: "integer", hash: "bytes" }, rows);
    };
    await restoreNodes();
    await migrate(database);
    t.deepEqual(await pages(), packed);
    t.false(await hasTable(database.read, "merkle_nodes"));

    await restoreNodes();
    await database.write.run((sql) =>
      sql("merkle_nodes")
        .where({ id: 40 })
        .update({ hash: Buffer.alloc(32, 1) }),
    );
    await migrate(database);
    const changed = (await pages()).filter(({ row_hash }, i) => row_hash !== packed[i]!.row_hash);
    t.deepEqual(
      changed.map(({ path }) => path),
      ["0002"],
    );
    const nodes = new Map(changed.map(({ path, page }) => [path, page]));
    const find = (level: number, positions: readonly number[]) => positions.map((at) => nodeIn(nodes, level, at));
    t.deepEqual(find(0, [40, 41]), [undefined, undefined]);
    t.deepEqual(find(1, [19, 20, 21]), [toHex(runs[1]!.hashes[19]!), undefined, toHex(runs[1]!.hashes[21]!)]);
  });
}
