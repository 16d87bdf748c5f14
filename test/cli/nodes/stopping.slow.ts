/** A node that stops during an outage of its database ends, and reports the parts that it could not stop. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { testKey } from "../../helpers/chain/keys.js";
import { type PostgresServer, startPostgres } from "../../helpers/databases/postgres-server.js";
import { cleanEnvironment, cliPath, collect } from "../../helpers/nodes/run-cli.js";
import { authorityDirectory } from "../../helpers/nodes/start-node.js";
import { until } from "../../helpers/nodes/until.js";
import { testUnless } from "../../helpers/nodes/when.js";

const started = await startPostgres();
const testPostgres = testUnless(typeof started === "string" ? started : undefined);
const postgres = started as PostgresServer;
testPostgres.after(() => postgres.remove());

for (const flags of [[], ["--json"]]) {
  testPostgres.serial(`SIGTERM ends a node without database with code 1, flags ${JSON.stringify(flags)}`, async (t) => {
    const dir = await authorityDirectory(t, testKey(1));
    const database = await postgres.createDatabase();
    const ports = ["--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0"];
    const options = ["--data-dir", dir, "--genesis", join(dir, "genesis.json"), "--database", database, "--recover"];
    const child = spawn(process.execPath, [cliPath, "start", ...ports, ...options, ...flags], {
      env: cleanEnvironment({}),
    });
    t.teardown(() => child.kill("SIGKILL"));
    const output = collect(child);
    const ended = once(child, "close");
    await until(() => /Ctrl-C stops it|"ready"/.test(output.stdout()));

    await postgres.crash("SIGKILL");
    t.teardown(() => postgres.start());
    child.kill("SIGTERM");
    t.deepEqual(await ended, [1, null]);
    t.regex(output.stderr(), /These parts of the node could not be stopped: [^\n]*writer lease/);
  });
}
