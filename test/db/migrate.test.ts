import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseError } from "../../src/db/queries/database.js";
import { openDatabase } from "../../src/db/open.js";
import { migrate } from "../../src/db/migrations/migrate.js";
import { firstStep, migrations } from "../../src/db/migrations/migrations.js";
import { StartError } from "../../src/base/errors/start-error.js";
import { startTestNode } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";

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
