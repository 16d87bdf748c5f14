/** Signals and errors during the start of a node, and repeated stops. */
import test from "ava";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import sqlite3 from "sqlite3";
import { loadConfig } from "../../../src/config/config.js";
import { ProcessErrors } from "../../../src/health/process-errors.js";
import { StartAborted } from "../../../src/base/errors/start-error.js";
import { startNode } from "../../../src/node/node.js";
import { testKey } from "../../helpers/chain/keys.js";
import { ask } from "../../helpers/wire/plain-client.js";
import { cleanEnvironment, cliPath, collect, startNodeProcess } from "../../helpers/nodes/run-cli.js";
import { authorityDirectory, sampleGenesis, silentPeer, startTestNode } from "../../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { until } from "../../helpers/nodes/until.js";
import { testUnless } from "../../helpers/nodes/when.js";

/** Holds the write lock of a database file, so that a boot waits. Returns a function that releases it. */
async function lockDatabase(t: Teardown, file: string): Promise<() => Promise<void>> {
  const database = new sqlite3.Database(file);
  t.teardown(() => database.close());
  const exec = promisify((sql: string, done: (error: Error | null) => void) => database.exec(sql, done));
  await exec("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE");
  return () => exec("ROLLBACK");
}

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test(`${signal} during the start ends the process with code 0`, async (t) => {
    const dir = await temporaryDirectory(t);
    const file = join(dir, "gatehouse.sqlite");
    await lockDatabase(t, file);
    const child = spawn(process.execPath, [cliPath, "start", "--data-dir", dir, "--json"], { env: cleanEnvironment() });
    t.teardown(() => child.kill("SIGKILL"));
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (text) => (stdout += String(text)));
    child.stderr.on("data", (text) => (stderr += String(text)));
    await until(() => stderr.includes("The start waits for it"));
    child.kill(signal);
    const [code] = (await once(child, "close")) as [number | null];
    t.is(code, 0, stderr);
    t.is(stdout, "", "the node was never ready");
    t.regex(stderr, /Node is shutting down/);
  });
}

/** Node.js options that send SIGHUP to the program while it loads its modules. */
const earlySighup = [
  "--import",
  `data:text/javascript,process.stdout.once("newListener",()=>setImmediate(()=>process.kill(process.pid,"SIGHUP")))`,
];

test("SIGHUP does not end a node that starts, even while its modules load", async (t) => {
  const dir = await temporaryDirectory(t);
  const file = join(dir, "gatehouse.sqlite");
  const release = await lockDatabase(t, file);
  const child = spawn(
    process.execPath,
    [...earlySighup, cliPath, "start", "--data-dir", dir, "--rpc-port", "0", "--omni-port", "0", "--json"],
    { env: cleanEnvironment() },
  );
  t.teardown(() => child.kill("SIGKILL"));
  const output = collect(child);
  await until(() => output.stderr().includes("The start waits for it"));
  child.kill("SIGHUP");
  await until(() => output.stderr().includes("There is no certificate to reload"));
  t.is(output.stdout(), "", "the node is not ready yet");
  await release();
  await until(() => output.stdout().includes('"event":"ready"'));
  child.kill("SIGTERM");
  t.deepEqual(await once(child, "close"), [0, null], output.stderr());
});

test("SIGHUP ends any other command, even while its modules load", async (t) => {
  const args = [...earlySighup, cliPath, "health", "--node", "http://192.0.2.1"];
  const child = spawn(process.execPath, args, { env: cleanEnvironment() });
  t.teardown(() => child.kill("SIGKILL"));
  t.deepEqual(await once(child, "close"), [null, "SIGHUP"]);
});

const fullDevice = "/dev/full";

testUnless(existsSync(fullDevice) ? undefined : `there is no ${fullDevice}`)(
  "a node continues when it cannot write its log",
  async (t) => {
    const wrapper = ["sh", "-c", `exec "$0" "$@" 2>${fullDevice}`];
    const node = await startNodeProcess(t, await temporaryDirectory(t), ["--log-level", "info"], wrapper);
    node.child.kill("SIGHUP");
    const diagnostics = async (): Promise<string> => (await ask(node.port, "/diagnostics")).text;
    await until(async () => (await diagnostics()).includes("There is no certificate to reload"));
    node.child.kill("SIGTERM");
    t.is(await node.ended, 0);
  },
);

test("a start with an aborted signal creates nothing", async (t) => {
  const dir = await temporaryDirectory(t);
  const config = loadConfig({ flags: { "data-dir": join(dir, "data"), "log-level": "silent" }, env: {}, cwd: dir });
  const options = { processErrors: new ProcessErrors(), signal: AbortSignal.abort() };
  await t.throwsAsync(startNode(config, options), { instanceOf: StartAborted });
  t.deepEqual(await readdir(dir), []);
});

test("concurrent calls of stop all resolve once the node has stopped", async (t) => {
  const node = await startTestNode(t, { genesis: sampleGenesis });
  const ended: string[] = [];
  await Promise.all([node.stop().then(() => ended.push("first")), node.stop().then(() => ended.push("second"))]);
  t.deepEqual(ended, ["first", "second"]);
  const socket = connect(node.port, "127.0.0.1");
  const [error] = (await once(socket, "error")) as [NodeJS.ErrnoException];
  t.is(error.code, "ECONNREFUSED");
});

test("a taken port ends the start of a node that denies drift, whichever port it is", async (t) => {
  const taken = await startTestNode(t);
  for (const name of ["rpc", "omni", "metrics", "mcp"]) {
    const dir = await authorityDirectory(t, testKey(1));
    await writeFile(join(dir, "peers.json"), JSON.stringify([{ url: silentPeer }]));
    const enabled = {
      genesis: "genesis.json",
      peers: "peers.json",
      "metrics-enabled": true,
      "mcp-enabled": true,
      "log-level": "silent",
    };
    const free = { "rpc-port": "0", "omni-port": "0", "metrics-port": "0", "mcp-port": "0" };
    const flags = { "data-dir": dir, host: "127.0.0.1", ...enabled, ...free, [`${name}-port`]: String(taken.port) };
    const config = loadConfig({ flags: { ...flags, "port-drift": "deny" }, env: {}, cwd: dir });
    const { message } = await t.throwsAsync(startNode(config, { processErrors: new ProcessErrors() }), undefined, name);
    t.is(message, `Port ${taken.port} is taken; choose another --${name}-port, or --port-drift allow.`);
  }
});

test("a failed start releases its ports and its data directory", async (t) => {
  const taken = await startTestNode(t);
  const dir = await temporaryDirectory(t);
  const flags = {
    ...{ "data-dir": dir, host: "127.0.0.1", "rpc-port": "0", "omni-port": String(taken.ports.omni) },
    ...{ "port-drift": "deny", "log-level": "silent" },
  };
  const config = loadConfig({ flags, env: {}, cwd: dir });
  const { message } = await t.throwsAsync(startNode(config, { processErrors: new ProcessErrors() }));
  t.regex(message, /is taken; choose another --omni-port/);
  // The control socket is removed and the database closed, so another node can use the directory.
  const again = await startTestNode(t, {}, dir);
  t.is((await ask(again.port, "/version")).status, 200);
});
