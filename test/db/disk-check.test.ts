import test from "ava";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDiskCheck } from "../../src/db/sqlite/disk-check.js";

/** Returns a read that fails the given number of times, as SQLite reports a failed read. */
function readFailing(times: number) {
  let reads = 0;
  const error = Object.assign(new Error("database disk image is malformed"), { code: "SQLITE_CORRUPT" });
  return () => {
    reads++;
    return reads <= times ? Promise.reject(error) : Promise.resolve(reads);
  };
}

test("a read that fails twice in a row is repeated; one that fails three times is corruption", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "gatehouse-check-"));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, "database.sqlite");
  await writeFile(path, "a file that can be read");
  const check = createDiskCheck(path);
  t.teardown(() => check.close());
  t.is(await check.runRead(readFailing(1)), 2);
  t.is(await check.runRead(readFailing(2)), 3);
  await t.throwsAsync(check.runRead(readFailing(3)), { code: "SQLITE_CORRUPT" });
});
