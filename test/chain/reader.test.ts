import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { openDatabase } from "../../src/db/open.js";
import { StartError } from "../../src/base/start-error.js";
import { programAddress } from "../../src/storage/write.js";
import { authorityDirectory } from "../helpers/start-member.js";
import { createPublic, signTransaction } from "../helpers/transactions.js";
import { genesisOf } from "../helpers/genesis.js";
import { testKey } from "../helpers/keys.js";
import { prepareEngines } from "../helpers/databases.js";
import { ask } from "../helpers/plain-client.js";
import { readFailure } from "../helpers/rpc-clients.js";
import { startTestNode } from "../helpers/start-node.js";
import { until } from "../helpers/until.js";

const engines = await prepareEngines();
test.after.always(() => engines.stop());

const [authority, alice] = [testKey(1), testKey(2)];

/** The database for a role that may read and nothing else, where the engine has roles. */
async function asReader(url: string): Promise<string> {
  if (!url.startsWith("postgres")) {
    return url;
  }
  const database = await openDatabase(url);
  await database.write.runAll((sql) => [
    sql.raw("CREATE ROLE gatehouse_reader LOGIN PASSWORD 'reads'"),
    sql.raw("GRANT SELECT ON ALL TABLES IN SCHEMA public TO gatehouse_reader"),
  ]);
  await database.close();
  return Object.assign(new URL(url), { username: "gatehouse_reader", password: "reads" }).href;
}

for (const engine of engines.names) {
  test(`${engine}: a reader serves what another node writes, as soon as it is written, and writes nothing`, async (t) => {
    const database = await engines.createUrl(t, engine);
    const early = await t.throwsAsync(startTestNode(t, { database, role: "reader" }), { instanceOf: StartError });
    t.regex(early.message, /start the node that writes to it first/);

    const dir = await authorityDirectory(t, authority);
    const writer = await startTestNode(t, { database, genesis: "genesis.json" }, dir);
    const reader = await startTestNode(t, { database: await asReader(database), role: "reader" });
    const write = createClient(ChainService, createGrpcTransport({ baseUrl: writer.rpcUrl }));
    const read = createClient(ChainService, createGrpcTransport({ baseUrl: reader.rpcUrl }));
    t.is((await ask(reader.port, "/genesis")).text, genesisOf(authority));

    const path = `/storage-program/${programAddress(alice.publicKey, "a", 1n, "")}`;
    t.is((await ask(reader.port, path)).status, 404);
    await write.submitTransaction({ transaction: signTransaction(alice, 1, createPublic("a", '{"n":1}')) });
    await until(async () => (await ask(reader.port, path)).status === 200);
    await until(async () => (await read.getHead({})).number === 1n);
    const storageAddress = path.slice("/storage-program/".length);
    const change = { case: "setField" as const, value: { storageAddress, field: "n", value: "2" } };
    await write.submitTransaction({ transaction: signTransaction(alice, 2, change) });
    await until(async () => (await ask(reader.port, `${path}/field/n`)).text.includes('"value":2'));

    const transaction = signTransaction(alice, 3, createPublic("b", "{}"));
    const refused = readFailure(await t.throwsAsync(read.submitTransaction({ transaction })));
    t.like(refused, { reason: "STATE_NOT_READY", message: "This node only reads; hand it to the node that writes." });
    await until(async () => (await read.getHead({})).number === 2n);
  });
}
