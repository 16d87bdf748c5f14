/**
 * Only one node writes to a database: a second one does not start, and one that follows a killed one starts at once.
 */
import test, { type ExecutionContext } from "ava";
import { cp, rename, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { StartError } from "../../../src/base/errors/start-error.js";
import { openDatabase } from "../../../src/db/open.js";
import { prepareEngines } from "../../helpers/databases/databases.js";
import { testKey, writeKey } from "../../helpers/chain/keys.js";
import { ask, askJson } from "../../helpers/wire/plain-client.js";
import { readFailure } from "../../helpers/wire/rpc-clients.js";
import { runCliProcess, type RunningCli, startCli } from "../../helpers/nodes/run-cli.js";
import { authorityDirectory, startTestNode } from "../../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { type ChainClient, chainClient, include, newProgram } from "../../helpers/chain/submit.js";
import { eventually, until } from "../../helpers/nodes/until.js";

const engines = await prepareEngines();

const [authority, alice, other] = [testKey(1), testKey(2), testKey(3)];

const freePorts = ["--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0"];

/** Starts a node that writes, as a process that logs to stderr. */
async function startWriter(t: Teardown, database: string, dir: string): Promise<RunningCli> {
  const args = ["start", "--data-dir", dir, "--genesis", join(dir, "genesis.json"), "--database", database];
  return await startCli(t, [...args, ...freePorts, "--log-level", "info", "--recover"]);
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
    `${engine}: a second writer does not start and names the first; after a kill -9 another one starts at once`,
    async (t) => {
      const dir = await authorityDirectory(t, authority);
      const database = await engines.createUrl(t, engine);
      const first = await startWriter(t, database, dir);
      await include(chainClient(first), newProgram(alice, 1));
      const otherDir = await authorityDirectory(t, authority);
      const second = await runCliProcess(["start", "--data-dir", otherDir, "--database", database, ...freePorts]);
      t.is(second.code, 1);
      t.regex(
        second.stderr.trim().split("\n").at(-1)!,
        new RegExp(
          `^gatehouse: Another node, process ${first.child.pid} on ${hostname()}, since \\d{4}-.*Z, writes to th.* database.*; stop it first`,
        ),
      );
      first.child.kill("SIGKILL");
      await first.ended;
      const successor = await startWriter(t, database, otherDir);
      await include(chainClient(successor), newProgram(alice, 2));
      t.false(successor.stderr().includes("the lease expires"), "it did not wait for the lease");
    },
  );

  test.serial(`${engine}: exactly one of several writers that start at the same time succeeds`, async (t) => {
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
    `${engine}: a node detects that its latest block was deleted from the database, and produces no other one`,
    async (t) => {
      const dir = await authorityDirectory(t, authority);
      const url = await engines.createUrl(t, engine);
      const node = await startTestNode(t, { database: url, genesis: "genesis.json" }, dir);
      const client = chainClient(node);
      for (const nonce of [1, 2, 3]) {
        await include(client, newProgram(alice, nonce));
      }
      const database = await openDatabase(url);
      t.teardown(() => database.close());
      const [row] = await database.read.rows<object>((sql) => sql("blocks").where("number", 3));
      await database.write.run((sql) => sql("blocks").where("number", 3).delete());
      await until(async () => !(await healthOf(node.port)).accepting);
      const { subsystems } = await healthOf(node.port);
      t.is(subsystems.chain.status, "failed");
      // Either the next block, a read of the block or the scan of the stored data detects it first.
      t.regex(
        subsystems.chain.lastError.message,
        /^The latest block in the database is 2, but this node has created or applied 3 \(|^Block 3 is missing in the database\.|does not match the state root of block 2|^The database has transactions of blocks that it does not have\./,
      );
      const transaction = newProgram(alice, 4);
      // The transaction waits, or is rejected if the scan has found corruption in data that it requires.
      await client.submitTransaction({ transaction }).catch(() => undefined);

      await database.write.run((sql) => sql("blocks").insert(row));
      await eventually(
        "the transaction is accepted",
        async () => (await client.submitTransaction({ transaction })).hash !== "",
      );
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
    `${engine}: a node with another key than the database's, or none, starts only with --recover`,
    async (t) => {
      const dir = await authorityDirectory(t, authority);
      const flags = { database: await engines.createUrl(t, engine), recover: false };
      await (await startTestNode(t, { ...flags, genesis: "genesis.json" }, dir)).stop();
      const withOtherKey = await temporaryDirectory(t);
      await writeKey(join(withOtherKey, "identity.key"), other);
      await t.throwsAsync(startTestNode(t, flags, withOtherKey), {
        instanceOf: StartError,
        message: `The database belongs to the node ${authority.publicKey}; this key is ${other.publicKey}. Restore the key from the backup, or start with --recover to take it over.`,
      });
      const empty = await temporaryDirectory(t);
      await t.throwsAsync(startTestNode(t, flags, empty), {
        instanceOf: StartError,
        message: `The database belongs to the node ${authority.publicKey}, whose key is not at ${join(empty, "identity.key")}. Restore the key from the backup, or start with --recover to take it over.`,
      });
      await t.throwsAsync(startTestNode(t, flags, empty), { message: /whose key is not at/ }, "no key was created");
      await (await startTestNode(t, flags, dir)).stop();

      const owner = await startTestNode(t, { ...flags, recover: true }, withOtherKey);
      t.is(owner.publicKey, other.publicKey);
      await owner.stop();
      await t.throwsAsync(startTestNode(t, flags, dir), {
        message: new RegExp(`belongs to the node ${other.publicKey}`),
      });
      const reader = await startTestNode(t, { ...flags, role: "reader" });
      t.not(reader.publicKey, other.publicKey, "readers may have any key");
    },
  );
}

test.serial("sqlite: a node does not start if the key next to the database was replaced", async (t) => {
  const dir = await authorityDirectory(t, authority);
  await (await startTestNode(t, { genesis: "genesis.json", recover: false }, dir)).stop();
  await writeKey(join(dir, "identity.key"), other);
  await t.throwsAsync(startTestNode(t, { recover: false }, dir), { message: /^The database belongs to the node/ });
  await rm(join(dir, "identity.key"));
  await t.throwsAsync(startTestNode(t, { recover: false }, dir), { message: /whose key is not at/ });
});

/** Checks that a transaction is rejected because the database is unavailable. */
async function checkRejected(t: ExecutionContext, client: ChainClient, nonce: number): Promise<void> {
  const failure = readFailure(await t.throwsAsync(client.submitTransaction({ transaction: newProgram(alice, nonce) })));
  t.is(failure.reason, "DATABASE_UNAVAILABLE");
}

/** Starts a node in a directory that the test may move, and includes one transaction in a block. */
async function startInMovable(t: Teardown) {
  const dir = join(await temporaryDirectory(t), "data");
  await cp(await authorityDirectory(t, authority), dir, { recursive: true });
  const node = await startTestNode(t, { genesis: join(dir, "genesis.json") }, dir);
  const client = chainClient(node);
  await include(client, newProgram(alice, 1));
  return { dir, node, client };
}

test.serial(
  "a node acknowledges nothing while its data directory is renamed, and recovers once it is back",
  async (t) => {
    const { dir, node, client } = await startInMovable(t);
    const canRead = async (): Promise<boolean> => (await ask(node.port, "/storage-program/search?q=p1")).status === 200;
    t.true(await canRead());
    await rename(dir, `${dir}-moved`);
    await checkRejected(t, client, 2);
    await until(async () => (await ask(node.port, "/health")).status === 503);
    const { accepting, subsystems } = await healthOf(node.port);
    t.is(
      subsystems.chain.lastError.message,
      "The file gatehouse.sqlite was moved or replaced while the node had it open; the node stores nothing until it is back.",
    );
    t.false(accepting);
    t.true(await canRead(), "reads still work");

    await rename(`${dir}-moved`, dir);
    await until(async () => (await ask(node.port, "/health")).status === 200);
    await include(client, newProgram(alice, 2));
  },
);

test.serial(
  "a node detects that its data directory was removed, and does not accept a copy in its place",
  async (t) => {
    const { dir, node, client } = await startInMovable(t);
    await cp(dir, `${dir}-copy`, { recursive: true, filter: (path) => !path.endsWith(".sock") });
    await rm(dir, { recursive: true });
    await checkRejected(t, client, 2);
    await rename(`${dir}-copy`, dir);
    await checkRejected(t, client, 3);
    await until(async () => (await healthOf(node.port)).subsystems.chain.status === "failed");
  },
);

test.serial("sqlite: a second node does not start on the same database by another path", async (t) => {
  const dir = await authorityDirectory(t, authority);
  await startTestNode(t, { genesis: "genesis.json" }, dir);
  const moved = `${dir}-moved`;
  await rename(dir, moved);
  t.teardown(() => rename(moved, dir));
  await t.throwsAsync(startTestNode(t, { "control-socket": join(await temporaryDirectory(t), "s") }, moved), {
    message: /^Another node, process \d+ on .* writes to the database sqlite:.*; stop it first\.$/,
  });
});

test.serial("sqlite: a node does not start while another process locks the database", async (t) => {
  const dir = await authorityDirectory(t, authority);
  const database = await openDatabase(`sqlite:${join(dir, "gatehouse.sqlite")}`);
  t.teardown(() => database.close());
  t.true(await database.files!.lock());
  await t.throwsAsync(startTestNode(t, { genesis: "genesis.json" }, dir), {
    instanceOf: StartError,
    message: /^Another process writes to the database sqlite:.*; stop it first\.$/,
  });
});
