/** Start of a node whose SQLite file another process has locked. */
import test from "ava";
import { join } from "node:path";
import sqlite3 from "sqlite3";
import { StartError } from "../../src/base/errors/start-error.js";
import { freePort } from "../helpers/nodes/free-port.js";
import { ask } from "../helpers/wire/plain-client.js";
import { sampleGenesis, startTestNode } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { eventually } from "../helpers/nodes/until.js";

/** Locks an existing or a new file, as a sqlite3 shell does, until `unlock` is called. */
async function lock(t: Teardown, existing?: string): Promise<{ readonly file: string; unlock: () => Promise<void> }> {
  const file = existing ?? join(await temporaryDirectory(t), "a.sqlite");
  const connection = await new Promise<sqlite3.Database>((resolve, reject) => {
    const created = new sqlite3.Database(file, (error) => (error === null ? resolve(created) : reject(error)));
  });
  const run = (sql: string): Promise<void> =>
    new Promise((resolve, reject) => {
      connection.exec(sql, (error) => (error === null ? resolve() : reject(error)));
    });
  await run("PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS other (id); BEGIN IMMEDIATE");
  t.teardown(() => new Promise((resolve) => connection.close(resolve)));
  return { file, unlock: () => run("COMMIT") };
}

test("a start waits for the lock, and continues when it is released", async (t) => {
  const { file, unlock } = await lock(t);
  const starting = startTestNode(t, { database: `sqlite:${file}` });
  t.is(
    await Promise.race([starting.then(() => "started"), new Promise((resolve) => setTimeout(resolve, 4_000, "waits"))]),
    "waits",
  );
  await unlock();
  t.true((await starting).port > 0);
});

test("a start fails after two minutes, and names the locked file and the remedy", async (t) => {
  t.timeout(180_000);
  const { file } = await lock(t);
  await t.throwsAsync(startTestNode(t, { database: `sqlite:${file}` }), {
    instanceOf: StartError,
    message: `The file ${file} is locked by another process, such as a backup or a sqlite3 shell; stop that process (\`fuser ${file}\` shows its id), then start again. The start has waited 120 s for the database.`,
  });
});

test("a start waits for a lock of the mempool's file, and its port reports the reason meanwhile", async (t) => {
  const file = join(await temporaryDirectory(t), "a.sqlite");
  await (await startTestNode(t, { database: `sqlite:${file}`, genesis: sampleGenesis })).stop();
  const { unlock } = await lock(t, `${file}-mempool`);
  const port = await freePort();
  const starting = startTestNode(t, { database: `sqlite:${file}`, "rpc-port": String(port), genesis: sampleGenesis });
  await eventually("the node reports the lock", async () =>
    (await ask(port, "/diagnostics")).text.includes("is locked by another process"),
  );
  t.is((await ask(port, "/health")).status, 503);
  await unlock();
  t.true((await starting).port > 0);
});
