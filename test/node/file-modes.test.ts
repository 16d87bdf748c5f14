/** Modes of the files that a node creates: only its user may open them, whatever the umask is. */
import test from "ava";
import { createGatehouse } from "gatehouse-client";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { StartError } from "../../src/base/errors/start-error.js";
import { ensurePrivateDirectory } from "../../src/base/files/private-files.js";
import { freePort } from "../helpers/nodes/free-port.js";
import { testKey } from "../helpers/chain/keys.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { cleanEnvironment, cliPath, collect, startCli, startNodeProcess } from "../helpers/nodes/run-cli.js";
import { authorityDirectory, startTestNode } from "../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";

/** Arguments that run the following command with this umask. */
const withUmask = (mask: string): readonly string[] => ["sh", "-c", `umask ${mask}; exec "$@"`, "sh"];

/** Modes of all files and directories below a directory, by path. */
async function modesIn(directory: string): Promise<Record<string, string>> {
  const modes: Record<string, string> = {};
  for (const name of await readdir(directory, { recursive: true })) {
    const stats = await stat(join(directory, name));
    modes[name] = (stats.mode & 0o777).toString(8);
  }
  return modes;
}

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o7777;

for (const mask of ["000", "777"]) {
  test(`with umask ${mask}, only the user of the node may open its files`, async (t) => {
    const home = await temporaryDirectory(t);
    const seed = await authorityDirectory(t, testKey(1));
    const dir = join(home, "above", "data");
    // With umask 777 the node could not enter a parent directory that it creates, so it exists already.
    await mkdir(mask === "777" ? join(home, "above") : home, { recursive: true });
    const flags = ["--genesis", join(seed, "genesis.json"), "--control-port", "0", "--metrics-enabled"];
    const { ready, child, ended } = await startNodeProcess(t, dir, [...flags, "--metrics-port", "0"], withUmask(mask));
    t.is((await askJson(ready.ports["rpc"]!, "/health"))["version"], "0.2.0");
    t.is(await modeOf(dir), 0o700);
    const modes = await modesIn(dir);
    t.deepEqual(modes, {
      "control.sock": "600",
      "control.token": "600",
      "gatehouse.sqlite": "600",
      "gatehouse.sqlite-lock": "600",
      "gatehouse.sqlite-mempool": "600",
      "gatehouse.sqlite-mempool-shm": "600",
      "gatehouse.sqlite-mempool-wal": "600",
      "gatehouse.sqlite-shm": "600",
      "gatehouse.sqlite-wal": "600",
      "identity.key": "600",
    });
    if (mask === "000") {
      t.is(await modeOf(join(home, "above")), 0o700);
    }
    child.kill("SIGTERM");
    t.is(await ended, 0);
  });
}

test("restricts files and directories of other modes at the start, and logs that", async (t) => {
  const dir = await authorityDirectory(t, testKey(1));
  const flags = ["--genesis", join(dir, "genesis.json")];
  const first = await startNodeProcess(t, dir, flags);
  // A killed process leaves all three files. An older version created them with these modes.
  first.child.kill("SIGKILL");
  await first.ended;
  const files = ["gatehouse.sqlite", "gatehouse.sqlite-wal", "gatehouse.sqlite-shm"];
  await Promise.all(files.map((name) => chmod(join(dir, name), 0o644)));
  await writeFile(join(dir, "control.token"), "a token", { mode: 0o644 });
  await chmod(dir, 0o755);
  const args = ["start", "--data-dir", dir, "--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0"];
  const second = await startCli(t, [...args, "--control-port", "0", ...flags], {}, withUmask("000"));
  t.is(await modeOf(dir), 0o700);
  for (const name of [...files, "control.token", "control.sock", "identity.key"]) {
    t.is(await modeOf(join(dir, name)), 0o600, name);
  }
  t.regex(
    second.stderr(),
    /"msg":"The data directory was accessible to other users; the node has restricted it to its owner"/,
  );
  second.child.kill("SIGTERM");
  await second.ended;
  t.false(await ensurePrivateDirectory(dir));
});

test("rejects a data directory that all users may write to", async (t) => {
  const dir = join(await temporaryDirectory(t), "shared");
  await mkdir(dir);
  await chmod(dir, 0o1777);
  const error = await t.throwsAsync(startTestNode(t, {}, dir), { instanceOf: StartError });
  t.is(error.message, `The data directory ${dir} is shared with other users; give another one with --data-dir.`);
  t.deepEqual(await readdir(dir), []);
  t.is(await modeOf(dir), 0o1777);
});

const asRoot = process.getuid?.() === 0 ? "root may change every directory" : undefined;
testUnless(asRoot)("rejects a data directory of another user that others can read", async (t) => {
  // /usr belongs to root, and everyone may read it.
  await t.throwsAsync(ensurePrivateDirectory("/usr"), {
    message: /can be read by others than the node, .* chmod 700 \/usr$/,
  });
});

test("only the user may open the files that commands write, except for the genesis", async (t) => {
  const home = await temporaryDirectory(t);
  const network = await startCli(
    t,
    [
      "devnet",
      "--nodes",
      "1",
      "--data-dir",
      join(home, "net"),
      "--rpc-port",
      String(await freePort()),
      "--log-level",
      "fatal",
    ],
    {},
    withUmask("000"),
  );
  const node = network.ready.rpc;
  const client = createGatehouse(node);
  const { genesisHash } = await client.chain.getHead({});
  const transaction = signTransaction(testKey(5), 1, createPublic("a", "{}"), { network: genesisHash });
  await client.chain.submitTransaction({ transaction });
  await until(async () => (await client.chain.getHead({})).number > 0n);
  const run = async (...args: readonly string[]): Promise<void> => {
    const [command, ...rest] = [...withUmask("000"), process.execPath, cliPath, ...args];
    const child = spawn(command!, rest, { env: cleanEnvironment(), cwd: home });
    const output = collect(child);
    const [code] = (await once(child, "close")) as [number | null];
    t.is(code, 0, output.stderr());
  };
  await run("keygen", "--out", "keys/alice.key");
  await run("block", "export", "blocks.bin", "--data-dir", join(home, "net", "node-1"));
  network.child.kill("SIGTERM");
  await network.ended;
  t.is(await modeOf(join(home, "keys")), 0o700);
  t.is(await modeOf(join(home, "keys", "alice.key")), 0o600);
  t.is(await modeOf(join(home, "blocks.bin")), 0o600);
  const modes = await modesIn(join(home, "net"));
  t.is(await modeOf(join(home, "net")), 0o700);
  t.is(modes["genesis.json"], "644");
  t.is(modes["node-1"], "700");
  t.deepEqual([...new Set(Object.values(modes))].sort(), ["600", "644", "700"]);
});
