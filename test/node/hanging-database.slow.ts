/** A node whose PostgreSQL hangs while the node runs, or is lost during its start. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { testKey } from "../helpers/chain/keys.js";
import { type PostgresServer, startPostgres } from "../helpers/databases/postgres-server.js";
import { startNodeProcess } from "../helpers/nodes/run-cli.js";
import { authorityDirectory } from "../helpers/nodes/start-node.js";
import { eventually } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";
import type { HealthBody } from "../helpers/process/health-shape.js";
import { createForwarder } from "../helpers/wire/forwarder.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";

const started = await startPostgres();
const testPostgres = testUnless(typeof started === "string" ? started : undefined);
const postgres = started as PostgresServer;
testPostgres.after(() => postgres.remove());

/** The health messages that docs/data.md documents. */
const documented =
  /^The database (does not respond|accepts no writes) \((E[A-Z]+|no connection|no response within 1000 ms)\)\.$/;

testPostgres.serial(
  "health reports a hanging database with the documented messages, and SIGTERM ends the node in 10 s",
  async (t) => {
    const dir = await authorityDirectory(t, testKey(1));
    const database = await createForwarder(t, await postgres.createDatabase());
    await database.open();
    const node = await startNodeProcess(t, dir, ["--genesis", join(dir, "genesis.json"), "--database", database.url]);
    database.freeze();
    const messages = new Set<string>();
    for (const endMs = Date.now() + 20_000; Date.now() < endMs; await sleep(50)) {
      const { status, accepting, subsystems } = await askJson<HealthBody>(node.port, "/health");
      t.true(status !== "failing" || !accepting);
      if (status === "failing") {
        messages.add(subsystems.chain!.lastError!.message);
      }
    }
    t.true(messages.size > 0);
    t.deepEqual(
      [...messages].filter((message) => !documented.test(message)),
      [],
    );
    node.child.kill("SIGTERM");
    const killedMs = Date.now();
    t.is(await node.ended, 1);
    const tookMs = Date.now() - killedMs;
    t.true(tookMs < 10_000, `${tookMs} ms`);
  },
);

testPostgres.serial("a start waits for a database that is lost at any of its steps", async (t) => {
  const dir = await authorityDirectory(t, testKey(1));
  const database = await createForwarder(t, await postgres.createDatabase());
  const flags = ["--genesis", join(dir, "genesis.json"), "--database", database.url];
  const start = () => startNodeProcess(t, dir, flags);
  await database.open();
  const stop = async ({ child, ended, stderr }: Awaited<ReturnType<typeof start>>): Promise<void> => {
    child.kill("SIGTERM");
    t.is(await ended, 0, stderr());
  };
  await stop(await start());
  // The first start has created the tables. After about 64 packets, the node has started.
  for (let packets = 16; packets <= 64; packets += 6) {
    const closed = database.closeAfter(packets);
    const starting = start();
    starting.catch(() => undefined);
    await Promise.race([closed, starting]);
    await database.close();
    await sleep(500);
    await database.open();
    await t.notThrowsAsync(starting, `${packets}`);
    await eventually("the node is healthy", async () => (await ask((await starting).port, "/health")).status === 200);
    await stop(await starting);
  }
});
