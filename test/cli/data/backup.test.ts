/** `gatehouse backup` and `gatehouse restore`: a backup restores the same node, and a corrupt one is rejected. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, open, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ChainService, TransactionStatus } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { openDatabase } from "../../../src/db/open.js";
import { openSqlite, prepareEngines } from "../../helpers/databases/databases.js";
import { testKey, writeKey } from "../../helpers/chain/keys.js";
import { endpointOf, headOf, networkOf, peersOf, startMemberOf } from "../../helpers/nodes/network.js";
import { ask, askJson } from "../../helpers/wire/plain-client.js";
import { cleanEnvironment, cliOutput, cliPath, runCli } from "../../helpers/nodes/run-cli.js";
import { authorityDirectory, startTestNode, type TestNode } from "../../helpers/nodes/start-node.js";
import { alice, authority, pathsOf, storeChain } from "../../helpers/chain/stored-chain.js";
import { type Teardown, temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { createPublic, signTransaction } from "../../helpers/chain/transactions.js";
import { until } from "../../helpers/nodes/until.js";

const engines = await prepareEngines();

const [bob, stranger] = [testKey(5), testKey(6)];

const clientOf = ({ rpcUrl }: Pick<TestNode, "rpcUrl">) =>
  createClient(ChainService, createGrpcTransport({ baseUrl: rpcUrl }));

/** Submits a transaction of Bob. Returns its hash. */
async function submit(node: Pick<TestNode, "rpcUrl">, nonce: number): Promise<string> {
  const transaction = signTransaction(bob, nonce, createPublic(`p${nonce}`, "{}"));
  await clientOf(node).submitTransaction({ transaction });
  return sha256(transaction.body);
}

/** Submits a transaction of Bob, and waits for its block. */
async function include(node: Pick<TestNode, "rpcUrl">, nonce: number): Promise<void> {
  const hash = await submit(node, nonce);
  await until(async () => (await clientOf(node).getTransaction({ hash })).status === TransactionStatus.INCLUDED);
}

/** Changes a byte in the middle of a file. */
async function corrupt(path: string): Promise<void> {
  const file = await open(path, "r+");
  const position = Math.floor((await file.stat()).size / 2);
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, position);
  buffer[0]! ^= 1;
  await file.write(buffer, 0, 1, position);
  await file.close();
}

interface Restored {
  readonly node: string;
  readonly key: string | null;
  readonly head: { readonly number: number };
  readonly isAuthority: boolean;
  readonly warnings: readonly string[];
}

interface ChainHealth {
  readonly subsystems: {
    readonly chain: {
      readonly status: string;
      readonly lastError: { readonly message: string } | null;
      readonly extra?: { readonly reason?: string };
    };
  };
}

const backUp = (folder: string, dir: string): Promise<string> => cliOutput(["backup", folder, "--data-dir", dir]);

async function restore(folder: string, dir: string): Promise<Restored> {
  const { code, stdout, stderr } = await runCli(["restore", folder, "--data-dir", dir, "--json"]);
  if (code !== 0) {
    throw new Error((JSON.parse(stderr) as { error: string }).error);
  }
  return JSON.parse(stdout) as Restored;
}

for (const engine of engines.names) {
  test.serial(`${engine}: the backup of a running node restores it with all acknowledged transactions`, async (t) => {
    const dir = await authorityDirectory(t, authority);
    const url = await engines.createUrl(t, engine);
    const stored = await storeChain(url);
    await writeFile(join(dir, "peers.json"), "[]");
    const options = join(dir, "options.yaml");
    await writeFile(options, `data-dir: ${dir}\ndatabase: ${url}\n`);
    const node = await startTestNode(t, { database: url }, dir);

    const writing = new AbortController();
    const acknowledged: string[] = [];
    const written = (async (): Promise<void> => {
      for (let nonce = 1; !writing.signal.aborted; nonce++) {
        acknowledged.push(await submit(node, nonce));
      }
    })();
    await until(() => acknowledged.length > 3);
    const acknowledgedBefore = [...acknowledged];
    const folder = join(await temporaryDirectory(t), "backups", "one");
    const command = ["backup", folder, "--config", options, "--json"];
    const saved = await cliOutput(command);
    writing.abort();
    await written;
    t.like(JSON.parse(saved), { node: authority.publicKey, key: authority.publicKey, engine, warnings: [] });
    const names = (await readdir(folder)).sort();
    t.deepEqual(names, [
      ...["backup.json", "config.yaml", "gatehouse.sqlite", "gatehouse.sqlite-mempool", "genesis.json"],
      ...["identity.key", "peers.json"],
    ]);
    t.is((await stat(folder)).mode & 0o777, 0o700);
    for (const name of names) {
      t.is((await stat(join(folder, name))).mode & 0o777, 0o600, name);
    }
    t.deepEqual(await readdir(dirname(folder)), ["one"], "no draft is left");
    t.regex((await runCli(command)).stderr, /already exists; give a new folder/);

    const target = join(await temporaryDirectory(t), "restored");
    const restored = await restore(folder, target);
    t.like(restored, { node: authority.publicKey, isAuthority: true });
    t.regex(restored.warnings[0]!, /is an authority, and no peer has reported the latest block/);
    t.is((await stat(target)).mode & 0o777, 0o700);
    t.false((await readdir(target)).includes("restoring"));
    t.regex((await runCli(["restore", folder, "--data-dir", target])).stderr, /is not empty; give a new --data-dir/);

    // The original still runs, and they share no peer: the restored node must not produce blocks by itself.
    const duplicate = await startTestNode(t, { recover: false }, target);
    const pending = await submit(duplicate, 1_000_000);
    const reasonOf = async (): Promise<string> =>
      (await askJson<ChainHealth>(duplicate.port, "/health")).subsystems.chain.extra?.reason ?? "";
    await until(async () =>
      /database was restored, and no peer .* --recover; otherwise add a peer/.test(await reasonOf()),
    );
    t.like(await askJson(duplicate.port, "/health"), { accepting: false });
    t.is((await headOf(duplicate)).number, restored.head.number);
    await duplicate.stop();
    t.true((await readdir(target)).includes("restored"));
    const allowed = await startTestNode(t, { recover: true }, target);
    await until(async () => !(await readdir(target)).includes("restored"));
    await allowed.stop();

    const again = await startTestNode(t, { recover: false }, target);
    t.is(again.publicKey, node.publicKey);
    await until(
      async () => (await clientOf(again).getTransaction({ hash: pending })).status === TransactionStatus.INCLUDED,
    );
    for (const path of pathsOf(stored).filter((candidate) => !/head|owner|search|merkle/.test(candidate))) {
      t.is((await ask(again.port, path)).text, (await ask(node.port, path)).text, path);
    }
    // Every transaction that was acknowledged before the backup is in a block or pending.
    for (const hash of acknowledgedBefore) {
      const { status } = await clientOf(again).getTransaction({ hash });
      t.true(status === TransactionStatus.INCLUDED || status === TransactionStatus.PENDING, hash);
    }
    await cliOutput(["verify-data", "--data-dir", target]);
  });
}

/** Creates the data directory of a stopped node with two blocks. */
async function createDataDir(t: Teardown): Promise<string> {
  const dir = await authorityDirectory(t, authority);
  const node = await startTestNode(t, {}, dir);
  await include(node, 1);
  await include(node, 2);
  await node.stop();
  return dir;
}

test.serial("restore rejects a backup with any changed or missing file, and leaves no files", async (t) => {
  const dir = await createDataDir(t);
  const home = await temporaryDirectory(t);
  const folder = join(home, "backup");
  await backUp(folder, dir);
  const rejects = async (change: (folder: string) => Promise<unknown>, message: RegExp): Promise<void> => {
    const changed = join(home, "changed");
    await cp(folder, changed, { recursive: true });
    await change(changed);
    const target = join(home, "target");
    await t.throwsAsync(restore(changed, target), { message });
    t.deepEqual(await readdir(target).catch(() => []), [], "the target has no files");
    await rm(changed, { recursive: true });
    await rm(target, { recursive: true, force: true });
  };
  for (const name of ["gatehouse.sqlite", "gatehouse.sqlite-mempool", "identity.key", "genesis.json"]) {
    await rejects(
      (at) => corrupt(join(at, name)),
      new RegExp(`^The backup is corrupt: the file ${name} does not match its hash`),
    );
    await rejects((at) => rm(join(at, name)), new RegExp(`the file ${name} is missing`));
  }
  await rejects((at) => rm(join(at, "backup.json")), /There is no complete backup at .*: backup\.json is missing/);
  const edit = (from: RegExp | string, to: string) => async (at: string) => {
    const path = join(at, "backup.json");
    const text = await readFile(path, "utf8");
    t.not(text, text.replace(from, to));
    await writeFile(path, text.replace(from, to));
  };
  await rejects(edit(/\{/, "["), /backup\.json is corrupt: it is not JSON/);
  await rejects(edit('"number": 2', '"number": 3'), /backup\.json does not match its files/);
  await rejects(edit('"formatVersion": 1', '"formatVersion": 2'), /in a format that this version does not support/);
  await rejects(edit(authority.publicKey, stranger.publicKey), /backup\.json does not match its files/);
  // Corruption from before the backup: all hashes match.
  await rejects(async (at) => {
    const path = join(at, "gatehouse.sqlite");
    const sqlite = openSqlite(t, path);
    await sqlite("transactions").where("block_number", 2).delete();
    await sqlite.destroy();
    await edit(/"sizeBytes": \d+,\s+"sha256": "0x[0-9a-f]{64}"/, manifestEntry(await readFile(path)))(at);
  }, /^The database in the backup is corrupt: .* Use another backup/);
  t.like(await restore(folder, join(home, "target")), { head: { number: 2 } });
});

function manifestEntry(bytes: Buffer): string {
  return `"sizeBytes": ${bytes.length}, "sha256": "${sha256(bytes)}"`;
}

test.serial("database copy does not change a backup that it copies from", async (t) => {
  const dir = await createDataDir(t);
  const home = await temporaryDirectory(t);
  const folder = join(home, "backup");
  await backUp(folder, dir);
  const database = join(folder, "gatehouse.sqlite");
  const paths = [database, `${database}-mempool`];
  const read = () => Promise.all(paths.map(async (path) => sha256(await readFile(path))));
  const saved = await read();
  await cliOutput(["database", "copy", database, join(home, "copy.sqlite")]);
  t.deepEqual(await read(), saved);
  t.like(await restore(folder, join(home, "target")), { head: { number: 2 } });
});

test.serial("backup and restore warn of a missing key and of the key of another node", async (t) => {
  const dir = await createDataDir(t);
  const home = await temporaryDirectory(t);
  await cliOutput(["backup", join(home, "without"), "--data-dir", dir, "--without-key"]);
  t.false((await readdir(join(home, "without"))).includes("identity.key"));
  const without = await restore(join(home, "without"), join(home, "a"));
  t.is(without.key, null);
  const advice = new RegExp(`backup does not contain the key; .* copy the key of ${authority.publicKey}`);
  t.regex(without.warnings[0]!, advice);
  await t.throwsAsync(startTestNode(t, { recover: false }, join(home, "a")), { message: /whose key is not at/ });
  await writeKey(join(home, "a", "identity.key"), authority);
  await (await startTestNode(t, { recover: false }, join(home, "a"))).stop();

  await rm(join(dir, "identity.key"));
  const missing = await runCli(["backup", join(home, "missing"), "--data-dir", dir]);
  t.is(missing.code, 1);
  t.regex(missing.stderr, /^gatehouse: There is no key at .*--without-key\.\n$/);
  await writeKey(join(dir, "identity.key"), stranger);
  const other = await backUp(join(home, "other"), dir);
  t.regex(other, new RegExp(`! The key is that of ${stranger.publicKey}, but the database belongs to`));
  t.regex((await restore(join(home, "other"), join(home, "b"))).warnings[0]!, /a node with this key does not start/);
});

test.serial("an interrupted backup or restore leaves nothing that is mistaken for a complete one", async (t) => {
  const dir = await createDataDir(t);
  const database = await openDatabase(`sqlite:${join(dir, "gatehouse.sqlite")}`);
  // Make the database large enough for an interruption in the middle.
  await database.write.run((sql) => sql.raw("CREATE TABLE ballast AS SELECT randomblob(10000000) AS bytes"));
  await database.close();
  const home = await temporaryDirectory(t);
  const folder = join(home, "killed");
  const interruptAt = async (args: string[], hasStarted: () => Promise<boolean>, signal: NodeJS.Signals) => {
    const child = spawn(process.execPath, [cliPath, ...args], { env: cleanEnvironment() });
    t.teardown(() => child.kill("SIGKILL"));
    const ended = once(child, "close");
    // Poll often, since the awaited file exists only for a moment.
    while (child.exitCode === null && !(await hasStarted())) {
      await sleep(1);
    }
    child.kill(signal);
    return (await ended) as unknown[];
  };
  const drafts = async (): Promise<string[]> => (await readdir(home)).filter((name) => name.endsWith(".draft"));
  const hasDraft = async (): Promise<boolean> => (await drafts()).length > 0;
  const command = ["backup", folder, "--data-dir", dir];
  t.deepEqual(await interruptAt(command, hasDraft, "SIGTERM"), [130, null]);
  t.deepEqual(await readdir(home), [], "backup deletes its draft");
  t.deepEqual(await interruptAt(command, hasDraft, "SIGKILL"), [null, "SIGKILL"]);
  t.false((await readdir(home)).includes("killed"));
  const [draft] = await drafts();
  await t.throwsAsync(restore(join(home, draft!), join(home, "x")), { message: /There is no complete backup at/ });
  await backUp(folder, dir);

  const target = join(home, "target");
  const isStaged = async (): Promise<boolean> =>
    (await readdir(join(target, "restoring")).catch((): string[] => [])).includes("gatehouse.sqlite");
  t.deepEqual(await interruptAt(["restore", folder, "--data-dir", target], isStaged, "SIGKILL"), [null, "SIGKILL"]);
  t.deepEqual(await readdir(target), ["restoring"]);
  // The remaining files of the killed restore do not prevent another one.
  t.like(await restore(folder, target), { head: { number: 2 } });
});

test.serial("restore finds a running duplicate on any page of a peer list, and stops at endless lists", async (t) => {
  const dir = await createDataDir(t);
  let duplicateOffset = 1;
  let requests = 0;
  /** Request from which on the peer no longer lists the node as online; undefined if it sees it anew each time. */
  let onlineUntilRequest: number | undefined;
  const server = createServer(({ url: path }, response) => {
    const { pathname, searchParams } = new URL(path!, "http://peer");
    const offset = Number(searchParams.get("offset"));
    requests++;
    const identity = offset === duplicateOffset ? authority.publicKey : stranger.publicKey;
    const online = onlineUntilRequest === undefined || requests < onlineUntilRequest;
    const timestamp = onlineUntilRequest === undefined ? Date.now() : 1;
    const page = offset > duplicateOffset ? [] : [{ identity, status: { online, timestamp } }];
    response.end(JSON.stringify(pathname === "/peerlist" ? page : { number: 2 }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const sqlite = openSqlite(t, join(dir, "gatehouse.sqlite"));
  const peer = { endpoint: "https://127.0.0.1:9", connection_string: url, origin: "operator" };
  await sqlite("peers").insert({ ...peer, failures: 0, next_try_ms: 0 });
  await sqlite.destroy();
  const home = await temporaryDirectory(t);
  await backUp(join(home, "backup"), dir);
  const { warnings } = await restore(join(home, "backup"), join(home, "one"));
  t.regex(warnings.join("\n"), new RegExp(`A node with this key is running: ${url} is connected to it`));

  // A peer learns of the end of a node with a delay.
  [duplicateOffset, onlineUntilRequest, requests] = [0, 4, 0];
  const ended = await restore(join(home, "backup"), join(home, "ended"));
  t.notRegex(ended.warnings.join("\n"), /A node with this key is running/);

  [duplicateOffset, onlineUntilRequest, requests] = [Infinity, undefined, 0];
  await restore(join(home, "backup"), join(home, "two"));
  t.true(requests > 2 && requests < 100, `${requests}`);
});

test.serial("a restored authority produces no block while the original runs, and catches up first", async (t) => {
  const { genesis } = networkOf(authority);
  const dir = await temporaryDirectory(t);
  const first = await startMemberOf(t, { key: authority, genesis, dir });
  const seeds = [endpointOf(first)];
  const follower = await startMemberOf(t, { key: alice, genesis, seeds, flags: { recover: false } });
  await include(first, 1);
  await until(async () => (await headOf(follower)).number === 1);
  await cliOutput(["peers", "add", endpointOf(follower), "--data-dir", dir]);
  await until(async () => (await peersOf(first)).some(({ status }) => status.ready));

  const folder = join(await temporaryDirectory(t), "backup");
  await until(async () => {
    await rm(folder, { recursive: true, force: true });
    await backUp(folder, dir);
    return (await countReachablePeers(t, folder)) > 0;
  });
  await include(first, 2);
  await until(async () => (await headOf(follower)).number === 2);
  const target = join(await temporaryDirectory(t), "restored");
  const restored = await restore(folder, target);
  t.is(restored.head.number, 1);
  const warnings = restored.warnings.join("\n");
  t.regex(warnings, new RegExp(`A node with this key is running: ${follower.rpcUrl} is connected to it`));
  t.regex(warnings, /The backup ends with block 1, but peers are at block 2\. .* Do not use --recover/);

  const flags = { recover: false, "allow-private-peers": true, "loop-interval": "0.2" };
  const second = await startTestNode(t, flags, target);
  const chainOf = async ({ port }: TestNode) => (await askJson<ChainHealth>(port, "/health")).subsystems.chain;
  await until(async () => (await chainOf(second)).status === "failed");
  t.regex((await chainOf(second)).lastError!.message, /key/);
  await until(async () => (await chainOf(first)).status === "failed");
  await second.stop();
  await first.stop();

  // Without the original, it fetches the missing blocks from its peer.
  const alone = await startTestNode(t, flags, target);
  await until(async () => (await headOf(alone)).number === 2);
  t.deepEqual(await headOf(alone), await headOf(follower));
});

/** Returns the number of peers in a backup whose address for clients is known. */
async function countReachablePeers(t: Teardown, folder: string): Promise<number> {
  const sqlite = openSqlite(t, join(folder, "gatehouse.sqlite"));
  const peers = await sqlite("peers").whereNotNull("connection_string");
  await sqlite.destroy();
  return peers.length;
}
