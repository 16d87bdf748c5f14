/** A node that is told to stop: while it starts, twice, and with a part that cannot be ended. */
import test from "ava";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readlink } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import sqlite3 from "sqlite3";
import { loadConfig } from "../../src/config/config.js";
import { createProcessErrors } from "../../src/health/process-errors.js";
import { StartAborted } from "../../src/base/start-error.js";
import { startNode } from "../../src/node/node.js";
import { ask } from "../helpers/plain-client.js";
import { cleanEnvironment, cliPath } from "../helpers/run-cli.js";
import { sampleGenesis, startTestNode } from "../helpers/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/teardown.js";
import { until } from "../helpers/until.js";

/** A database file that another process writes to until the test ends: a boot that migrates it waits. */
async function lockDatabase(t: Teardown, file: string): Promise<void> {
  const database = new sqlite3.Database(file);
  t.teardown(() => database.close());
  const exec = promisify((sql: string, done: (error: Error | null) => void) => database.exec(sql, done));
  await exec("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE");
}

/** Names of the files that a process has open. */
async function openFiles(pid: number): Promise<string[]> {
  const directory = `/proc/${pid}/fd`;
  const names = await readdir(directory);
  return await Promise.all(names.map((name) => readlink(join(directory, name)).catch(() => "")));
}

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test(`${signal} while it starts ends what has begun, and the process with code 0`, async (t) => {
    const dir = await temporaryDirectory(t);
    const file = join(dir, "gatehouse.sqlite");
    await lockDatabase(t, file);
    const child = spawn(process.execPath, [cliPath, "start", "--data-dir", dir, "--json"], { env: cleanEnvironment() });
    t.teardown(() => child.kill("SIGKILL"));
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (text) => (stdout += String(text)));
    child.stderr.on("data", (text) => (stderr += String(text)));
    await until(async () => (await openFiles(child.pid!)).includes(file));
    child.kill(signal);
    const [code] = (await once(child, "close")) as [number | null];
    t.is(code, 0, stderr);
    t.is(stdout, "", "it was never ready");
    t.regex(stderr, /Node is shutting down/);
  });
}

test("a start whose signal is aborted already begins nothing", async (t) => {
  const dir = await temporaryDirectory(t);
  const config = loadConfig({ flags: { "data-dir": join(dir, "data"), "log-level": "silent" }, env: {}, cwd: dir });
  const options = { processErrors: createProcessErrors(), signal: AbortSignal.abort() };
  await t.throwsAsync(startNode(config, options), { instanceOf: StartAborted });
  t.deepEqual(await readdir(dir), []);
});

test("whoever tells it to stop while it stops waits for the same end", async (t) => {
  const node = await startTestNode(t, { genesis: sampleGenesis });
  const ended: string[] = [];
  await Promise.all([node.stop().then(() => ended.push("first")), node.stop().then(() => ended.push("second"))]);
  t.deepEqual(ended, ["first", "second"]);
  const socket = connect(node.port, "127.0.0.1");
  const [error] = (await once(socket, "error")) as [NodeJS.ErrnoException];
  t.is(error.code, "ECONNREFUSED");
});

test("a start that fails leaves nothing behind: its ports can be had again", async (t) => {
  const taken = await startTestNode(t);
  const dir = await temporaryDirectory(t);
  const flags = {
    ...{ "data-dir": dir, host: "127.0.0.1", "rpc-port": "0", "omni-port": String(taken.ports.omni) },
    ...{ "port-drift": "deny", "log-level": "silent" },
  };
  const config = loadConfig({ flags, env: {}, cwd: dir });
  const { message } = await t.throwsAsync(startNode(config, { processErrors: createProcessErrors() }));
  t.regex(message, /is taken; choose another --omni-port/);
  // Its control socket is gone, and its database is closed: another node has the directory.
  const again = await startTestNode(t, {}, dir);
  t.is((await ask(again.port, "/version")).status, 200);
});
