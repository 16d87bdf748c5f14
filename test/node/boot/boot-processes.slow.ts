/** Node processes whose database is unreachable at the start, or lost before they stop. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createForwarder } from "../../helpers/wire/forwarder.js";
import { freePort } from "../../helpers/nodes/free-port.js";
import { testKey } from "../../helpers/chain/keys.js";
import { ask, askJson } from "../../helpers/wire/plain-client.js";
import { type PostgresServer, startPostgres } from "../../helpers/databases/postgres-server.js";
import { cleanEnvironment, cliPath, collect } from "../../helpers/nodes/run-cli.js";
import { authorityDirectory } from "../../helpers/nodes/start-node.js";
import type { Teardown } from "../../helpers/nodes/teardown.js";
import { eventually, until } from "../../helpers/nodes/until.js";
import { testUnless } from "../../helpers/nodes/when.js";

const started = await startPostgres();
const testPostgres = testUnless(typeof started === "string" ? started : undefined);
const postgres = started as PostgresServer;
testPostgres.after(() => postgres.remove());

/** Starts a node in a child process on this database. */
async function start(t: Teardown, database: string, flags: readonly string[], node: readonly string[] = []) {
  const dir = await authorityDirectory(t, testKey(1));
  const port = await freePort();
  const ports = ["--host", "127.0.0.1", "--rpc-port", String(port), "--omni-port", "0", "--port-drift", "deny"];
  const ownFlags = ["--data-dir", dir, "--genesis", join(dir, "genesis.json"), "--database", database, "--recover"];
  const child = spawn(process.execPath, [...node, cliPath, "start", ...ports, ...ownFlags, ...flags], {
    env: cleanEnvironment({}),
  });
  t.teardown(() => child.kill("SIGKILL"));
  return { child, port, ended: once(child, "close") as Promise<[number | null, string | null]>, ...collect(child) };
}

for (const workers of ["1", "2"]) {
  testPostgres.serial(
    `--workers ${workers}: waits for an unreachable database, and serves once it is reachable`,
    async (t) => {
      const database = await createForwarder(t, await postgres.createDatabase());
      const node = await start(t, database.url, ["--workers", workers, "--json"]);
      await eventually("the port is open", async () => (await ask(node.port, "/livez")).status === 200);
      t.is((await ask(node.port, "/health")).status, 503);
      await eventually(
        "the node waits for the database",
        async () =>
          (await ask(node.port, "/health")).text.includes('"mempool_size":null') &&
          (await ask(node.port, "/health")).text.includes('"current":"database"'),
      );
      t.is((await ask(node.port, "/version")).status, 200);
      const head = await ask(node.port, "/chain/head");
      t.is(head.status, 503);
      t.regex(head.text, /STATE_NOT_READY/);
      t.is(node.stdout(), "", "the node is not ready yet");
      await database.open();
      await until(() => node.stdout().includes('"event":"ready"'));
      t.is((await ask(node.port, "/chain/head")).status, 200);
      t.like(await askJson(node.port, "/health"), {
        boot: { complete: true },
        subsystems: { rpc: { status: "ready" } },
      });
      node.child.kill("SIGTERM");
      t.deepEqual(await node.ended, [0, null], node.stderr());
    },
  );

  testPostgres.serial(
    `--workers ${workers}: SIGTERM ends a node that waits for its database with code 0`,
    async (t) => {
      const database = await createForwarder(t, await postgres.createDatabase());
      const node = await start(t, database.url, ["--workers", workers]);
      await eventually("the port is open", async () => (await ask(node.port, "/livez")).status === 200);
      node.child.kill("SIGTERM");
      t.deepEqual(await node.ended, [0, null], node.stderr());
    },
  );
}

/** Node.js options that disable `process.exit`. After 15 s a process prints the resources that keep it running. */
const withoutExit = [
  "--import",
  `data:text/javascript,const exit = process.exit;
  process.exit = (code) => {
    if (code !== undefined) process.exitCode = code;
    process.stdin.destroy();
    const left = () => process.getActiveResourcesInfo().filter((name) => !/^(PipeWrap|TTYWrap|SignalWrap|FSReqPromise|Immediate|CloseReq)$/.test(name));
    setTimeout(() => { process.stderr.write("STILL THERE: " + left().join(", ") + "\\n"); exit(99); }, 15_000).unref();
    return new Promise(() => undefined);
  };`.replaceAll("\n", " "),
];

for (const flags of [
  [],
  ["--role", "standby"],
  ["--workers", "2"],
  ["--metrics-enabled", "--metrics-port", "0", "--mcp-enabled", "--mcp-port", "0"],
]) {
  testPostgres.serial(
    `SIGTERM ends a node whose database is lost, without process.exit: ${flags.join(" ")}`,
    async (t) => {
      const url = await postgres.createDatabase();
      const database = await createForwarder(t, url);
      await database.open();
      if (flags.includes("standby")) {
        const writer = await start(t, url, ["--json"]);
        await until(() => writer.stdout().includes('"ready"'));
      }
      const node = await start(t, database.url, flags, withoutExit);
      await until(() => node.stdout().includes("Ctrl-C stops it"));
      await database.close();
      await eventually("the node notices", async () => (await ask(node.port, "/health")).status === 503);
      node.child.kill("SIGTERM");
      const [code] = await node.ended;
      t.true(code === 0 || code === 1, node.stderr());
      t.notRegex(node.stderr(), /STILL THERE/);
    },
  );
}
