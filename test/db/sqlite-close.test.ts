/** The end of a SQLite database is no error where the last queries of it are. */
import test from "ava";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { openSqlite } from "../../src/db/sqlite/sqlite.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";

test("a connection that cannot be opened while the database is closed fails its query alone", async (t) => {
  const file = join(await temporaryDirectory(t), "a.sqlite");
  const database = await openSqlite(file);
  await rename(file, `${file}.away`);
  const asked = t.throwsAsync(database.read.prepare<object>("SELECT 1")());
  await t.notThrowsAsync(database.close());
  await asked;
});

test("a query that cannot be compiled while the database is closed fails alone", async (t) => {
  const database = await openSqlite(join(await temporaryDirectory(t), "a.sqlite"));
  const asked = t.throwsAsync(database.read.prepare<object>("SELECT nothing")());
  await t.notThrowsAsync(database.close());
  await asked;
});
