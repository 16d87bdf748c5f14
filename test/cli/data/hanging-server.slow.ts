/** Commands on a PostgreSQL server that hangs: they end with an error that names the database and a remedy. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type PostgresServer, startPostgres } from "../../helpers/databases/postgres-server.js";
import { runCliProcess } from "../../helpers/nodes/run-cli.js";
import { authorityDirectory, startTestNode } from "../../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { testUnless } from "../../helpers/nodes/when.js";
import { testKey } from "../../helpers/chain/keys.js";
import { createForwarder } from "../../helpers/wire/forwarder.js";

const started = await startPostgres();
const testPostgres = testUnless(typeof started === "string" ? started : undefined);
const postgres = started as PostgresServer;
testPostgres.after(() => postgres.remove());

/** Numbers of packets after which the server hangs, beyond what opening the database takes on each connection. */
const packetCounts = Array.from({ length: 12 }, (_, i) => i + 1);

for (const command of ["backup", "verify-data", "doctor"]) {
  testPostgres.serial(`${command} ends when the server hangs, after any of its first packets`, async (t) => {
    const dir = await authorityDirectory(t, testKey(1));
    const url = await postgres.createDatabase();
    await (await startTestNode(t, { database: url, genesis: "genesis.json" }, dir)).stop();
    await Promise.all(
      packetCounts.map(async (packets) => {
        const database = await createForwarder(t, url);
        await database.open();
        database.freezeAfter(packets);
        const folder = command === "backup" ? [join(await temporaryDirectory(t), "saved")] : [];
        const ending = runCliProcess([command, ...folder, "--data-dir", dir, "--database", database.url]);
        // On an idle machine the command takes at most 20 s, mostly the time limits of connections.
        const ended = await Promise.race([ending, sleep(180_000, undefined, { ref: false })]);
        t.truthy(ended, `it ends, frozen after ${packets} packets`);
        const { code, stdout, stderr } = ended!;
        t.true(code === 1 || code === 2, String(code));
        const output = command === "doctor" ? stdout : stderr;
        t.true(output.includes(`The database ${new URL(database.url).host}/`), output);
        t.true(output.includes("check that PostgreSQL is running there"), output);
        t.notRegex(output, /Knex|timeout expired|Connection terminated/);
      }),
    );
  });
}
