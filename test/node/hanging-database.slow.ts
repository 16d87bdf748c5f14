/** A node whose PostgreSQL is there and answers nothing: what it says of it, and how long its stop takes. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { testKey } from "../helpers/chain/keys.js";
import { type PostgresServer, startPostgres } from "../helpers/databases/postgres-server.js";
import { startNodeProcess } from "../helpers/nodes/start-cli.js";
import { authorityDirectory } from "../helpers/nodes/start-member.js";
import { testUnless } from "../helpers/nodes/when.js";
import type { HealthBody } from "../helpers/process/health-shape.js";
import { createForwarder } from "../helpers/wire/forwarder.js";
import { askJson } from "../helpers/wire/plain-client.js";

const started = await startPostgres();
const testPostgres = testUnless(typeof started === "string" ? started : undefined);
const postgres = started as PostgresServer;
testPostgres.after(() => postgres.remove());

/** What docs/data.md says that the health says. */
const documented =
  /^The database (does not answer|takes no writes) \((E[A-Z]+|no connection|no answer within 1000 ms)\)\.$/;

testPostgres.serial("its health says it in the documented words, and SIGTERM ends it in time", async (t) => {
  const dir = await authorityDirectory(t, testKey(1));
  const database = await createForwarder(t, await postgres.createDatabase());
  await database.open();
  const node = await startNodeProcess(t, dir, ["--genesis", join(dir, "genesis.json"), "--database", database.url]);
  database.freeze();
  const told = new Set<string>();
  for (const endMs = Date.now() + 20_000; Date.now() < endMs; await sleep(50)) {
    const { status, accepting, subsystems } = await askJson<HealthBody>(node.port, "/health");
    t.true(status !== "failing" || !accepting);
    if (status === "failing") {
      told.add(subsystems.chain!.lastError!.message);
    }
  }
  t.true(told.size > 0);
  t.deepEqual(
    [...told].filter((message) => !documented.test(message)),
    [],
  );
  node.child.kill("SIGTERM");
  const killedMs = Date.now();
  t.is(await node.ended, 1);
  const tookMs = Date.now() - killedMs;
  t.true(tookMs < 10_000, `${tookMs} ms`);
});
