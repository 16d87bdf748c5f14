/** One node writes to a database: who comes second is refused, and who comes after a killed one waits for nobody. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test, { type ExecutionContext } from "ava";
import { cp, rename, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { StartError } from "../../src/base/errors/start-error.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { openDatabase } from "../../src/db/open.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { testKey, writeKey } from "../helpers/chain/keys.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { runCliProcess } from "../helpers/nodes/run-cli.js";
import { type RunningCli, startCli } from "../helpers/nodes/start-cli.js";
import { authorityDirectory } from "../helpers/nodes/start-member.js";
import { startTestNode } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { eventually, until } from "../helpers/nodes/until.js";

const engines = await prepareEngines();

const [authority, alice, stranger] = [testKey(1), testKey(2), testKey(3)];

const free = ["--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0"];

/** A node that writes, as a process; its log goes to stderr. */
async function startWriter(t: Teardown, database: string, dir: string): Promise<RunningCli> {
  const args = ["start", "--data-dir", dir, "--genesis", join(dir, "genesis.json"), "--database", database];
  return await startCli(t, [...args, ...free, "--log-level", "info", "--recover"]);
}

/** Submits a transaction of alice, and waits until it is in a block. */
async function include(client: ReturnType<typeof clientOf>, nonce: number): Promise<void> {
  const transaction = signTransaction(alice, nonce, createPublic(`p${nonce}`, "{}"));
  await client.submitTransaction({ transaction });
  const hash = sha256(transaction.body);
  await until(async () => (await client.getTransaction({ hash })).status === TransactionStatus.INCLUDED);
}

function clientOf(rpcUrl: string) {
  return createClient(ChainService, createGrpcTransport({ baseUrl: rpcUrl }));
}

interface ChainHealth {
  readonly status: string;
  readonly accepting: boolean;
  readonly subsystems: {
    readonly chain: { readonly status: string; readonly lastError: { readonly message: string } };
  };
}

const healthOf = (port: number): Promise<ChainHealth> => askJson<ChainHealth>(port, "/health");

for (const engine of engines.names) {
  test.serial(
    `${engine}: a second writer is refused and told who the first is; after a kill -9 another is ready at once`,
    async (t) => {
      const dir = await authorityDirectory(t, authority);
      const database = await engines.createUrl(t, engine);
      const first = await startWriter(t, database, dir);
      await include(clientOf(first.ready.rpc), 1);
      const other = await authorityDirectory(t, authority);
      const refused = await runCliProcess(["start", "--data-dir", other, "--database", database, ...free]);
      t.is(refused.code, 1);
      t.regex(
        refused.stderr.trim().split("\n").at(-1)!,
        new RegExp(
          `^gatehouse: Another node, process ${first.child.pid} on ${hostname()}, since \\d{4}-.*Z, writes to th.* database.*; stop it first`,
        ),
      );
      first.child.kill("SIGKILL");
      await first.ended;
      const second = await startWriter(t, database, other);
      await include(clientOf(second.ready.rpc), 2);
      t.false(second.stderr().includes("the lease expires"), "it waited for nobody");
    },
  );

  test.serial(`${engine}: of writers that start at the same time exactly one starts`, async (t) => {
    const database = await engines.createUrl(t, engine);
    const dirs = await Promise.all([1, 2, 3].map(() => authorityDirectory(t, authority)));
    const started = await Promise.allSettled(dirs.map((dir) => startWriter(t, database, dir)));
    t.is(started.filter(({ status }) => status === "fulfilled").length, 1);
    for (const outcome of started) {
      if (outcome.status === "rejected") {
        t.regex(String(outcome.reason), /writes to th/);
      }
    }
  });

  test.serial(
    `${engine}: rows of the newest block that are deleted under a node are noticed, and no other block is made`,
    async (t) => {
      const dir = await authorityDirectory(t, authority);
      const url = await engines.createUrl(t, engine);
      const node = await startTestNode(t, { database: url, genesis: "genesis.json" }, dir);
      const client = clientOf(node.rpcUrl);
      for (const nonce of [1, 2, 3]) {
        await include(client, nonce);
      }
      const database = await openDatabase(url);
      t.teardown(() => database.close());
      const [row] = await database.read.rows<object>((sql) => sql("blocks").where("number", 3));
      await database.write.run((sql) => sql("blocks").where("number", 3).delete());
      await until(async () => !(await healthOf(node.port)).accepting);
      const { subsystems } = await healthOf(node.port);
      t.is(subsystems.chain.status, "failed");
      // Who looks first says so: the next block, or the walk over what is stored.
      t.regex(
        subsystems.chain.lastError.message,
        /^The latest block in the database is 2, but this node has created or applied 3 \(|does not match the state root of block 2|^The database has transactions of blocks that it does not have\./,
      );
      const transaction = signTransaction(alice, 4, createPublic("p4", "{}"));
      // It waits, or is refused where the walk has looked at what it needs.
      await client.submitTransaction({ transaction }).catch(() => undefined);

      await database.write.run((sql) => sql("blocks").insert(row));
      await eventually("it is taken", async () => (await client.submitTransaction({ transaction })).hash !== "");
      await until(async () => (await client.getHead({})).number === 4n);
      await until(async () => (await healthOf(node.port)).subsystems.chain.status === "ready");
      const numbers = await database.read.rows<{ number: number }>((sql) =>
        sql("blocks").orderBy("number").select("number"),
      );
      t.deepEqual(
        numbers,
        [0, 1, 2, 3, 4].map((number) => ({ number })),
      );
    },
  );

  test.serial(
    `${engine}: a database has its node's key; another one, or none, is refused unless the operator says so`,
    async (t) => {
      const dir = await authorityDirectory(t, authority);
      const flags = { database: await engines.createUrl(t, engine), recover: false };
      await (await startTestNode(t, { ...flags, genesis: "genesis.json" }, dir)).stop();
      const strange = await temporaryDirectory(t);
      await writeKey(join(strange, "identity.key"), stranger);
      await t.throwsAsync(startTestNode(t, flags, strange), {
        instanceOf: StartError,
        message: `The database belongs to the node ${authority.publicKey}; this key is ${stranger.publicKey}. Restore the key from the backup, or start with --recover to take it over.`,
      });
      const empty = await temporaryDirectory(t);
      await t.throwsAsync(startTestNode(t, flags, empty), {
        instanceOf: StartError,
        message: `The database belongs to the node ${authority.publicKey}, whose key is not at ${join(empty, "identity.key")}. Restore the key from the backup, or start with --recover to take it over.`,
      });
      await t.throwsAsync(startTestNode(t, flags, empty), { message: /whose key is not at/ }, "no key was made");
      await (await startTestNode(t, flags, dir)).stop();

      const owner = await startTestNode(t, { ...flags, recover: true }, strange);
      t.is(owner.publicKey, stranger.publicKey);
      await owner.stop();
      await t.throwsAsync(startTestNode(t, flags, dir), {
        message: new RegExp(`belongs to the node ${stranger.publicKey}`),
      });
      const reader = await startTestNode(t, { ...flags, role: "reader" });
      t.not(reader.publicKey, stranger.publicKey, "readers are whoever they are");
    },
  );
}

test.serial("sqlite: a key that was replaced beside the database is refused", async (t) => {
  const dir = await authorityDirectory(t, authority);
  await (await startTestNode(t, { genesis: "genesis.json", recover: false }, dir)).stop();
  await writeKey(join(dir, "identity.key"), stranger);
  await t.throwsAsync(startTestNode(t, { recover: false }, dir), { message: /^The database belongs to the node/ });
  await rm(join(dir, "identity.key"));
  await t.throwsAsync(startTestNode(t, { recover: false }, dir), { message: /whose key is not at/ });
});

/** A transaction is refused because of the database. */
async function isRefused(t: ExecutionContext, client: ReturnType<typeof clientOf>, nonce: number): Promise<void> {
  const transaction = signTransaction(alice, nonce, createPublic(`p${nonce}`, "{}"));
  const failure = readFailure(await t.throwsAsync(client.submitTransaction({ transaction })));
  t.is(failure.reason, "DATABASE_UNAVAILABLE");
}

/** A node with one transaction in a block, and its data directory, which may be moved. */
async function startInMovable(t: Teardown) {
  const dir = join(await temporaryDirectory(t), "data");
  await cp(await authorityDirectory(t, authority), dir, { recursive: true });
  const node = await startTestNode(t, { genesis: join(dir, "genesis.json") }, dir);
  const client = clientOf(node.rpcUrl);
  await include(client, 1);
  return { dir, node, client };
}

test.serial(
  "a data directory that is renamed under a node keeps it from acknowledging anything until it is back",
  async (t) => {
    const { dir, node, client } = await startInMovable(t);
    const isRead = async (): Promise<boolean> => (await ask(node.port, "/storage-program/search?q=p1")).status === 200;
    t.true(await isRead());
    await rename(dir, `${dir}-moved`);
    await isRefused(t, client, 2);
    await until(async () => (await ask(node.port, "/health")).status === 503);
    const { accepting, subsystems } = await healthOf(node.port);
    t.is(
      subsystems.chain.lastError.message,
      "The file gatehouse.sqlite was moved or replaced while the node had it open; the node stores nothing until it is back.",
    );
    t.false(accepting);
    t.true(await isRead(), "reads go on");

    await rename(`${dir}-moved`, dir);
    await until(async () => (await ask(node.port, "/health")).status === 200);
    await include(client, 2);
  },
);

test.serial(
  "a data directory that is removed under a node is noticed, and another one in its place is not taken for it",
  async (t) => {
    const { dir, node, client } = await startInMovable(t);
    await cp(dir, `${dir}-copy`, { recursive: true, filter: (path) => !path.endsWith(".sock") });
    await rm(dir, { recursive: true });
    await isRefused(t, client, 2);
    await rename(`${dir}-copy`, dir);
    await isRefused(t, client, 3);
    await until(async () => (await healthOf(node.port)).subsystems.chain.status === "failed");
  },
);

test.serial("sqlite: two names of one directory are one database", async (t) => {
  const dir = await authorityDirectory(t, authority);
  await startTestNode(t, { genesis: "genesis.json" }, dir);
  const moved = `${dir}-moved`;
  await rename(dir, moved);
  t.teardown(() => rename(moved, dir));
  await t.throwsAsync(startTestNode(t, { "control-socket": join(await temporaryDirectory(t), "s") }, moved), {
    message: /^Another node, process \d+ on .* writes to the database sqlite:.*; stop it first\.$/,
  });
});

test.serial("sqlite: a start where another process has the database, of which nothing is known, says so", async (t) => {
  const dir = await authorityDirectory(t, authority);
  const database = await openDatabase(`sqlite:${join(dir, "gatehouse.sqlite")}`);
  t.teardown(() => database.close());
  t.true(await database.files!.lock());
  await t.throwsAsync(startTestNode(t, { genesis: "genesis.json" }, dir), {
    instanceOf: StartError,
    message: /^Another process writes to the database sqlite:.*; stop it first\.$/,
  });
});
