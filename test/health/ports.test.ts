/** Requested and bound ports of a node, and its connection string. */
import test from "ava";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { createForwarder } from "../helpers/wire/forwarder.js";
import { freePort } from "../helpers/nodes/free-port.js";
import { type HealthBody, healthShape } from "../helpers/process/health-shape.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { sharedPostgres } from "../helpers/databases/postgres-server.js";
import { sampleGenesis, startMember, startTestNode } from "../helpers/nodes/start-node.js";
import { eventually } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";

const postgres = await sharedPostgres();
const testPostgres = testUnless(typeof postgres === "string" ? postgres : undefined);

async function health(port: number): Promise<HealthBody> {
  return healthShape.parse(JSON.parse((await ask(port, "/health")).text));
}

test("reports the requested port even if it is taken", async (t) => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  const taken = (server.address() as AddressInfo).port;
  const { port } = await startMember(t, { "mcp-enabled": true, "mcp-port": String(taken) });
  const { subsystems, ports } = await health(port);
  t.like(subsystems.mcp, { status: "ready", requestedPort: taken });
  t.not(ports.mcp!.actual, taken);
  t.deepEqual(ports.mcp, { requested: taken, actual: subsystems.mcp!.port!, drifted: true });
});

test("reports port 0 as requested and drifted, and no port for disabled subsystems", async (t) => {
  const { port } = await startTestNode(t);
  const { subsystems, ports } = await health(port);
  t.deepEqual(ports.rpc, { requested: 0, actual: port, drifted: true });
  t.like(subsystems.rpc, { port, requestedPort: 0 });
  t.like(subsystems.mcp, { port: null, requestedPort: null });
  t.like(subsystems.metrics, { port: null, requestedPort: null });
});

test("binds a free requested port without drift", async (t) => {
  const wanted = await freePort();
  const { port } = await startTestNode(t, { "rpc-port": String(wanted) });
  t.deepEqual((await health(port)).ports.rpc, { requested: wanted, actual: wanted, drifted: false });
});

test("reports the requested port of a skipped subsystem on a dormant node", async (t) => {
  const { port } = await startTestNode(t, { genesis: sampleGenesis, "mcp-enabled": true, "mcp-port": "3001" });
  t.like((await health(port)).subsystems.mcp, { status: "skipped", enabled: true, port: null, requestedPort: 3001 });
});

testPostgres("a subsystem that is pending shows the port that it requests", async (t) => {
  const databases = postgres as Exclude<typeof postgres, string>;
  const url = await databases.createDatabase();
  t.teardown(() => databases.dropDatabase(url));
  const database = await createForwarder(t, url);
  const [port, omniPort] = [await freePort(), await freePort()];
  const own = { "rpc-port": String(port), "omni-port": String(omniPort), "port-drift": "deny", genesis: sampleGenesis };
  const node = startTestNode(t, { ...own, database: database.url });
  await eventually("the port is open", async () => (await ask(port, "/livez")).status === 200);
  t.like((await health(port)).subsystems.omni, { status: "pending", port: null, requestedPort: omniPort });
  await database.open();
  await node;
  t.like((await health(port)).ports.omni, { requested: omniPort, actual: omniPort, drifted: false });
});

test("includes scheme, host and port in the connection string, even a default port", async (t) => {
  const connectionStringFor = async (publicUrl: string): Promise<unknown> =>
    await askJson((await startTestNode(t, { "public-url": publicUrl })).port, "/connectionstring");
  t.is(await connectionStringFor("https://node.example.org"), "https://node.example.org:443");
  t.is(await connectionStringFor("http://node.example.org/"), "http://node.example.org:80");
  t.is(await connectionStringFor("https://node.example.org:8443"), "https://node.example.org:8443");
  const { port } = await startTestNode(t, { "public-url": "https://node.example.org" });
  t.like(await askJson(port, "/info"), { connectionString: "https://node.example.org:443" });
});
