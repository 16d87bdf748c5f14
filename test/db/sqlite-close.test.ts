/** Closing of a SQLite database while its last queries fail. */
import test from "ava";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { openSqlite } from "../../src/db/sqlite/sqlite.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";

test("closing succeeds while a connection cannot be opened, and only its query rejects", async (t) => {
  const file = join(await temporaryDirectory(t), "a.sqlite");
  const database = await openSqlite(file);
  await rename(file, `${file}.away`);
  const rejected = t.throwsAsync(database.read.prepare<object>("SELECT 1")());
  await t.notThrowsAsync(database.close());
  await rejected;
});

test("closing succeeds while a query cannot be compiled, and only that query rejects", async (t) => {
  const database = await openSqlite(join(await temporaryDirectory(t), "a.sqlite"));
  const rejected = t.throwsAsync(database.read.prepare<object>("SELECT nothing")());
  await t.notThrowsAsync(database.close());
  await rejected;
});
