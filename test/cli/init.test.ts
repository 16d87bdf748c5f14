/** Creating a network with init and start, and joining it with join and start. */
import test from "ava";
import { existsSync } from "node:fs";
import { readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { sha256 } from "../../src/base/crypto/hash.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { runCli } from "../helpers/nodes/run-cli.js";
import { noRecover, type RunningCli, startNodeProcess } from "../helpers/nodes/start-cli.js";
import { storeProgram } from "../helpers/chain/submit.js";
import { startMember } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

const start = (t: Teardown, dir: string, ...flags: string[]): Promise<RunningCli> =>
  startNodeProcess(t, dir, [noRecover, ...flags]);

const isReady = async ({ port }: RunningCli): Promise<boolean> => (await ask(port, "/readyz")).status === 200;

const blockOf = async ({ port }: RunningCli): Promise<number> =>
  (await askJson<{ number: number }>(port, "/chain/head")).number;

test("the first node of a new network is ready and produces blocks, also after a restart", async (t) => {
  const dir = join(await temporaryDirectory(t), "one");
  const created = await runCli(["init", "--data-dir", dir, "--name", "mine"]);
  t.is(created.code, 0, created.stderr);
  const text = await readFile(join(dir, "genesis.json"), "utf8");
  const { name, authorities, followers } = JSON.parse(text) as Record<string, string | string[]>;
  t.is(name, "mine");
  t.deepEqual(followers, []);
  const shown = `^network +${sha256(text)}\nauthority +${authorities![0]}\nfollowers +listed: .* --identity KEY\n`;
  t.regex(created.stdout, new RegExp(shown));
  for (const file of ["identity.key", "genesis.json", "new-network"]) {
    t.is((await stat(join(dir, file))).mode & 0o077, 0, file);
  }

  const first = await start(t, dir);
  await until(() => isReady(first));
  t.like(await askJson(first.port, "/health"), { status: "dormant", accepting: true });
  const url = `http://127.0.0.1:${first.port}`;
  const key = join(dir, "alice.key");
  t.is((await runCli(["keygen", "--out", key])).code, 0);
  const written = await runCli(["storage", "create", "notes", "--node", url, "--key", key, "--data", "{}"]);
  t.is(written.code, 0, written.stderr);
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
  const { text: readiness } = await ask(withoutDatabase.port, "/readyz");
  t.regex(readiness, /dormant/);
  t.false(await isReady(withoutDatabase), "block 1 removed the new-network marker");
});

test("init and join reject a directory that has a network, and leave its files unchanged", async (t) => {
  const dir = await temporaryDirectory(t);
  t.is((await runCli(["init", "--data-dir", dir])).code, 0);
  const before = await readFile(join(dir, "genesis.json"), "utf8");
  for (const args of [["init"], ["join", "http://127.0.0.1:9", "--yes"]]) {
    const { code, stderr } = await runCli([...args, "--data-dir", dir]);
    t.is(code, 1);
    t.regex(stderr, /already has a network \(.*genesis\.json\); give another --data-dir/);
  }
  t.is(await readFile(join(dir, "genesis.json"), "utf8"), before);
});

test("init succeeds after an interrupted init", async (t) => {
  const parent = await temporaryDirectory(t);
  const one = join(parent, "one");
  t.is((await runCli(["init", "--data-dir", one])).code, 0);
  await rm(join(one, "genesis.json"));
  const again = await runCli(["init", "--data-dir", one, "--json"]);
  t.is(again.code, 0, again.stderr);
  const { genesisHash } = JSON.parse(again.stdout) as { genesisHash: string };
  t.is((await readFile(join(one, "new-network"), "utf8")).trim(), genesisHash);
});

test("join accepts only the network with the expected genesis hash", async (t) => {
  const node = await startMember(t, { "allow-private-peers": true });
  await storeProgram(t, node, "notes", "{}");
  const { genesisHash } = await askJson<{ genesisHash: string }>(node.port, "/chain/head");
  const dir = join(await temporaryDirectory(t), "two");
  const joinBy = (...flags: string[]) => runCli(["join", node.rpcUrl, "--data-dir", dir, ...flags]);

  const unconfirmed = await joinBy();
  t.is(unconfirmed.code, 2);
  t.true(unconfirmed.stderr.includes(`with --genesis-hash ${genesisHash}, or with --yes`), unconfirmed.stderr);
  const other = await joinBy("--genesis-hash", `0x${"1".repeat(64)}`);
  t.is(other.code, 1);
  t.regex(other.stderr, /which differs from --genesis-hash/);
  t.is((await joinBy("--genesis-hash", "0x12")).code, 2);
  t.false(existsSync(dir), "no file was written");

  const joined = await joinBy("--genesis-hash", genesisHash, "--json");
  t.is(joined.code, 0, joined.stderr);
  t.like(JSON.parse(joined.stdout), { genesisHash });
  t.is(sha256(await readFile(join(dir, "genesis.json"), "utf8")), genesisHash);
  const follower = await start(t, dir, "--allow-private-peers", "--loop-interval", "0.2");
  await until(() => isReady(follower));
  t.is(await blockOf(follower), 1);
});

test("a node follows a listed network once it is added, and an open network at once", async (t) => {
  const parent = await temporaryDirectory(t);
  const flags = ["--allow-private-peers", "--loop-interval", "0.2"];
  const createNetwork = async (
    name: string,
    ...more: string[]
  ): Promise<{ dir: string; node: RunningCli; url: string }> => {
    const dir = join(parent, name);
    t.is((await runCli(["init", "--data-dir", dir, ...more])).code, 0);
    const node = await start(t, dir, ...flags);
    await until(() => isReady(node));
    const url = `http://127.0.0.1:${node.port}`;
    const key = join(dir, "alice.key");
    t.is((await runCli(["keygen", "--out", key])).code, 0);
    const created = await runCli(["storage", "create", "notes", "--node", url, "--key", key, "--data", "{}"]);
    t.is(created.code, 0, created.stderr);
    return { dir, node, url };
  };
  const follow = async (url: string, name: string): Promise<{ node: RunningCli; shown: string }> => {
    const dir = join(parent, name);
    const joined = await runCli(["join", url, "--data-dir", dir, "--yes"]);
    t.is(joined.code, 0, joined.stderr);
    return { node: await start(t, dir, ...flags), shown: joined.stdout };
  };

  const listed = await createNetwork("listed");
  const { node, shown } = await follow(listed.url, "one");
  const [, identity = ""] = /^Add it: +gatehouse peers add URL --identity (0x[0-9a-f]{64}) /m.exec(shown) ?? [];
  await until(async () => (await ask(node.port, "/diagnostics")).text.includes("listed followers only"));
  t.is(await blockOf(node), 0);
  const peerUrl = `https://127.0.0.1:${node.ready.ports["omni"]!}`;
  const added = await runCli(["peers", "add", peerUrl, "--identity", identity, "--data-dir", listed.dir]);
  t.is(added.code, 0, added.stderr);
  await until(async () => (await blockOf(node)) === 1);

  const open = await createNetwork("open", "--followers", "open");
  t.false("followers" in (JSON.parse(await readFile(join(open.dir, "genesis.json"), "utf8")) as object));
  const second = await follow(open.url, "two");
  t.notRegex(second.shown, /Add it/);
  await until(async () => (await blockOf(second.node)) === 1);
});

test("join ends with code 3 if no node responds", async (t) => {
  const dir = await temporaryDirectory(t);
  const unreachable = await runCli(["join", "http://127.0.0.1:9", "--data-dir", dir, "--yes"]);
  t.is(unreachable.code, 3);
  t.regex(unreachable.stderr, /No node responds at http:\/\/127\.0\.0\.1:9/);
});
