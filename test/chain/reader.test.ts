import test from "ava";
import { chainClient } from "../helpers/chain/submit.js";
import { openDatabase } from "../../src/db/open.js";
import { StartError } from "../../src/base/errors/start-error.js";
import { startSync, endSync } from "../../src/snapshot/sync-store.js";
import { programAddress } from "../../src/storage/changes/write.js";
import { authorityDirectory, startTestNode } from "../helpers/nodes/start-node.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { genesisOf, testKey } from "../helpers/chain/keys.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { until } from "../helpers/nodes/until.js";

const engines = await prepareEngines();

const [authority, alice] = [testKey(1), testKey(2)];

/**
 * Creates an owner role and a read-only role, as docs/data.md describes, on an engine that has roles. Returns the URL
 * of the owner, and a function that grants read access and returns the URL of the reader.
 */
async function createRoles(url: string): Promise<readonly [owner: string, grantReader: () => Promise<string>]> {
  if (!url.startsWith("postgres")) {
    return [url, () => Promise.resolve(url)];
  }
  const as = (username: string): string => Object.assign(new URL(url), { username, password: "secret" }).href;
  const run = async (user: string, ...queries: readonly string[]): Promise<void> => {
    const database = await openDatabase(user);
    await database.write.runAll((sql) => queries.map((query) => sql.raw(query)));
    await database.close();
  };
  const name = new URL(url).pathname.slice(1);
  await run(
    url,
    "CREATE ROLE gatehouse_owner LOGIN PASSWORD 'secret'",
    "CREATE ROLE gatehouse_reader LOGIN PASSWORD 'secret'",
    `ALTER DATABASE ${name} OWNER TO gatehouse_owner`,
  );
  const owner = as("gatehouse_owner");
  const grant = async (): Promise<string> => {
    await run(
      owner,
      "GRANT SELECT ON ALL TABLES IN SCHEMA public TO gatehouse_reader",
      "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO gatehouse_reader",
      // Stands for a table that a later version adds.
      "CREATE TABLE later (n integer)",
    );
    return as("gatehouse_reader");
  };
  return [owner, grant];
}

for (const engine of engines.names) {
  test(`${engine}: a reader serves the state that another node writes, and rejects transactions`, async (t) => {
    const [database, grantReader] = await createRoles(await engines.createUrl(t, engine));
    const early = await t.throwsAsync(startTestNode(t, { database, role: "reader" }), { instanceOf: StartError });
    t.regex(early.message, /start the node that writes to it first/);

    const dir = await authorityDirectory(t, authority);
    const writer = await startTestNode(t, { database, genesis: "genesis.json" }, dir);
    const readOnly = await grantReader();
    const reader = await startTestNode(t, { database: readOnly, role: "reader" });
    if (engine === "postgresql") {
      const opened = await openDatabase(readOnly, "read");
      t.teardown(() => opened.close());
      t.deepEqual(await opened.read.rows((sql) => sql("later")), []);
      await t.throwsAsync(
        opened.write.run((sql) => sql("later").insert({ n: 1 })),
        { message: /permission denied/ },
      );
    }
    // A reader needs no peers to be ready, because it reads the database.
    t.is((await ask(reader.port, "/readyz")).status, 200);
    t.like(await askJson(reader.port, "/health"), { status: "ok", dormant: false, accepting: true });
    const write = chainClient(writer);
    const read = chainClient(reader);
    t.is((await ask(reader.port, "/genesis")).text, genesisOf(authority));

    const path = `/storage-program/${programAddress(alice.publicKey, "a", 1n, "")}`;
    t.is((await ask(reader.port, path)).status, 404);
    await write.submitTransaction({ transaction: signTransaction(alice, 1, createPublic("a", '{"n":1}')) });
    await until(async () => (await ask(reader.port, path)).status === 200);
    await until(async () => (await read.getHead({})).number === 1n);
    const storageAddress = path.slice("/storage-program/".length);
    // Repeated reads fill the caches.
    for (const { port } of [writer, reader, writer, reader, writer, reader]) {
      t.true((await ask(port, `${path}/field/n`)).text.includes('"value":1'));
    }
    const change = { case: "setField" as const, value: { storageAddress, field: "n", value: "2" } };
    await write.submitTransaction({ transaction: signTransaction(alice, 2, change) });
    // On either node, a response that names block 2 contains the state of block 2.
    for (const { port } of [writer, reader]) {
      await until(async () => {
        const { headers, text } = await ask(port, `${path}/field/n`);
        const block = Number(headers["gatehouse-block"]);
        t.true(text.includes(`"value":${block < 2 ? 1 : 2}`) || (block < 2 && text.includes('"value":2')), text);
        return block === 2;
      });
    }
    t.is((await ask(reader.port, "/version")).headers["gatehouse-block"], undefined);
    t.is((await ask(reader.port, "/storage-program/stor-0/field/n")).headers["gatehouse-block"], "2");

    const transaction = signTransaction(alice, 3, createPublic("b", "{}"));
    const refused = readFailure(await t.throwsAsync(read.submitTransaction({ transaction })));
    t.like(refused, {
      reason: "STATE_NOT_READY",
      message: "This node is read-only; submit the transaction to the writer.",
    });
    await until(async () => (await read.getHead({})).number === 2n);
  });

  test(`${engine}: a reader serves no state while the writer runs a snapshot sync`, async (t) => {
    const database = await engines.createUrl(t, engine);
    const dir = await authorityDirectory(t, authority);
    const writer = await startTestNode(t, { database, genesis: "genesis.json" }, dir);
    const { submitTransaction } = chainClient(writer);
    await submitTransaction({ transaction: signTransaction(alice, 1, createPublic("a", "{}")) });
    const path = `/storage-program/${programAddress(alice.publicKey, "a", 1n, "")}`;
    const early = await startTestNode(t, { database, role: "reader" });
    const hasStatus = async ({ port }: { readonly port: number }, status: number): Promise<boolean> =>
      (await ask(port, path)).status === status;
    await until(() => hasStatus(early, 200));
    await writer.stop();

    const opened = await openDatabase(database);
    t.teardown(() => opened.close());
    await startSync(opened.write, Buffer.alloc(0), 1n);
    await until(() => hasStatus(early, 503));
    const late = await startTestNode(t, { database, role: "reader" });
    for (const { port } of [early, late]) {
      t.regex((await ask(port, path)).text, /it is syncing from a snapshot/);
      t.regex((await ask(port, "/chain/head")).text, /it is syncing from a snapshot/);
      t.is((await ask(port, "/readyz")).status, 503);
    }
    await endSync(opened.write);
    await until(async () => (await hasStatus(early, 200)) && (await hasStatus(late, 200)));
    await until(async () => (await ask(late.port, "/readyz")).status === 200);
  });
}
