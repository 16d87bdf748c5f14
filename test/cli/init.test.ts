/** Creating a network with init and start, and joining it with join and start. */
import test from "ava";
import { existsSync } from "node:fs";
import { readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { sha256 } from "../../src/base/crypto/hash.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { cliOutput, noRecover, runCli, type RunningCli, startNodeProcess } from "../helpers/nodes/run-cli.js";
import { testKey, writeKey } from "../helpers/chain/keys.js";
import { storeProgram } from "../helpers/chain/submit.js";
import { startMember } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

/** Flags for networks on one machine that change quickly. */
const local = ["--allow-private-peers", "--loop-interval", "0.2"];

/** Starts a node, without --recover. */
const start = (t: Teardown, dir: string, ...flags: string[]): Promise<RunningCli> =>
  startNodeProcess(t, dir, [noRecover, ...flags]);

const isReady = async ({ port }: RunningCli): Promise<boolean> => (await ask(port, "/readyz")).status === 200;

const blockOf = async ({ port }: RunningCli): Promise<number> =>
  (await askJson<{ number: number }>(port, "/chain/head")).number;

async function modesOf(dir: string, ...files: string[]): Promise<number[]> {
  return await Promise.all(files.map(async (file) => (await stat(join(dir, file))).mode & 0o777));
}

/** Makes block 1 of a new network, once its node is ready. */
async function makeBlock(node: RunningCli, dir: string): Promise<void> {
  await until(() => isReady(node));
  const key = join(dir, "alice.key");
  await writeKey(key, testKey(2));
  await cliOutput(["storage", "create", "notes", "--node", node.ready.rpc, "--key", key, "--data", "{}"]);
}

test("the first node of a new network is ready and produces blocks, also after a restart", async (t) => {
  const dir = join(await temporaryDirectory(t), "one");
  const created = await cliOutput(["init", "--data-dir", dir, "--name", "mine"]);
  const text = await readFile(join(dir, "genesis.json"), "utf8");
  const { name, authorities, followers } = JSON.parse(text) as Record<string, string | string[]>;
  t.is(name, "mine");
  t.deepEqual(followers, []);
  const shown = `^network +${sha256(text)}\nauthority +${authorities![0]}\nfollowers +listed: .* --identity KEY\n`;
  t.regex(created, new RegExp(shown));
  t.deepEqual(await modesOf(dir, "identity.key", "genesis.json", "new-network"), [0o600, 0o644, 0o600]);

  const first = await start(t, dir);
  await until(() => isReady(first));
  t.like(await askJson(first.port, "/health"), { status: "dormant", accepting: true });
  await makeBlock(first, dir);
  await until(() => !existsSync(join(dir, "new-network")));
  first.child.kill("SIGKILL");
  await first.ended;

  const again = await start(t, dir);
  await until(() => isReady(again));
  t.is(await blockOf(again), 1);
  again.child.kill("SIGTERM");
  await again.ended;

  for (const file of ["gatehouse.sqlite", "gatehouse.sqlite-wal", "gatehouse.sqlite-shm"]) {
    await rm(join(dir, file), { force: true });
  }
  const withoutDatabase = await start(t, dir);
  t.regex((await ask(withoutDatabase.port, "/readyz")).text, /dormant/);
  t.false(await isReady(withoutDatabase), "block 1 removed the new-network marker");
});

test("init and join reject a directory that has a network, and init succeeds after an interrupted one", async (t) => {
  const dir = await temporaryDirectory(t);
  await cliOutput(["init", "--data-dir", dir]);
  const before = await readFile(join(dir, "genesis.json"), "utf8");
  for (const args of [["init"], ["join", "http://127.0.0.1:9", "--yes"]]) {
    const { code, stderr } = await runCli([...args, "--data-dir", dir]);
    t.is(code, 1);
    t.regex(stderr, /already has a network \(.*genesis\.json\); give another --data-dir/);
  }
  t.is(await readFile(join(dir, "genesis.json"), "utf8"), before);
  await rm(join(dir, "genesis.json"));
  const { genesisHash } = JSON.parse(await cliOutput(["init", "--data-dir", dir, "--json"])) as { genesisHash: string };
  t.is((await readFile(join(dir, "new-network"), "utf8")).trim(), genesisHash);
});

test("commands that create a data directory use GATEHOUSE_DATA_DIR, unless it is empty", async (t) => {
  const cwd = await temporaryDirectory(t);
  const node = await startMember(t);
  const run = (dir: string, ...args: string[]) => cliOutput(args, { cwd, env: { GATEHOUSE_DATA_DIR: dir } });
  await run("one", "init");
  await run("two", "keygen");
  await run("three", "join", node.rpcUrl, "--yes");
  await run(node.dir, "backup", "saved");
  await run("four", "restore", "saved");
  for (const dir of ["one", "two", "three", "four"]) {
    t.true(existsSync(join(cwd, dir, "identity.key")), dir);
  }
  await run("", "keygen");
  t.true(existsSync(join(cwd, "data", "identity.key")));
});

test("join accepts only the network with the expected genesis hash", async (t) => {
  const node = await startMember(t, { "allow-private-peers": true });
  await storeProgram(t, node, "notes", "{}");
  const { genesisHash } = await askJson<{ genesisHash: string }>(node.port, "/chain/head");
  const dir = join(await temporaryDirectory(t), "two");
  const command = ["join", node.rpcUrl, "--data-dir", dir];
  for (const [flags, code, message] of [
    [[], 2, `with --genesis-hash ${genesisHash}, or with --yes`],
    [["--genesis-hash", `0x${"1".repeat(64)}`], 1, "which differs from --genesis-hash"],
    [["--genesis-hash", "0x12"], 2, "--genesis-hash must be"],
  ] as const) {
    const rejected = await runCli([...command, ...flags]);
    t.is(rejected.code, code);
    t.true(rejected.stderr.includes(message), rejected.stderr);
  }
  t.false(existsSync(dir), "no file was written");

  t.like(JSON.parse(await cliOutput([...command, "--genesis-hash", genesisHash, "--json"])), { genesisHash });
  t.is(sha256(await readFile(join(dir, "genesis.json"), "utf8")), genesisHash);
  t.deepEqual(await modesOf(dir, "identity.key", "genesis.json", "peers.json"), [0o600, 0o644, 0o644]);
  const follower = await start(t, dir, ...local);
  await until(() => isReady(follower));
  await until(async () => (await blockOf(follower)) === 1);
});

test("a node follows a listed network once it is added, and an open network at once", async (t) => {
  const parent = await temporaryDirectory(t);
  const createNetwork = async (name: string, ...more: string[]) => {
    const dir = join(parent, name);
    await cliOutput(["init", "--data-dir", dir, ...more]);
    const node = await start(t, dir, ...local);
    await makeBlock(node, dir);
    return { dir, node };
  };
  const follow = async ({ ready }: RunningCli, name: string) => {
    const dir = join(parent, name);
    const shown = await cliOutput(["join", ready.rpc, "--data-dir", dir, "--yes"]);
    return { node: await start(t, dir, ...local), shown };
  };

  const listed = await createNetwork("listed");
  const { node, shown } = await follow(listed.node, "one");
  const [, identity = ""] =
    /^Add it: +gatehouse peers add https:\/\/HOST:53551 --identity (0x[0-9a-f]{64}) --data-dir DIR /m.exec(shown) ?? [];
  await until(async () => (await ask(node.port, "/diagnostics")).text.includes("listed followers only"));
  t.is(await blockOf(node), 0);
  const peerUrl = `https://127.0.0.1:${node.ready.ports["omni"]!}`;
  await cliOutput(["peers", "add", peerUrl, "--identity", identity, "--data-dir", listed.dir]);
  await until(async () => (await blockOf(node)) === 1);

  const open = await createNetwork("open", "--followers", "open");
  t.false("followers" in (JSON.parse(await readFile(join(open.dir, "genesis.json"), "utf8")) as object));
  const second = await follow(open.node, "two");
  t.notRegex(second.shown, /Add it/);
  await until(async () => (await blockOf(second.node)) === 1);
});
