/** `gatehouse start` as a process: output, configuration and shutdown. */
import test from "ava";
import { once } from "node:events";
import { mkdir, stat, writeFile } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { HealthService } from "../../../gen/gatehouse/health/v1/health_pb.js";
import type { HealthBody } from "../../helpers/process/health-shape.js";
import { connectGrpc } from "../../helpers/wire/grpc-client.js";
import { ask, askJson } from "../../helpers/wire/plain-client.js";
import { runCliProcess, startCli } from "../../helpers/nodes/run-cli.js";
import { sampleGenesis } from "../../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { until } from "../../helpers/nodes/until.js";

const startOn = (dir: string): string[] => [
  ...["start", "--data-dir", join(dir, "data"), "--rpc-port", "0", "--omni-port", "0"],
  ...["--host", "127.0.0.1", "--log-level", "error"],
];

test("the only line on stdout is the ready event with the ports of the node", async (t) => {
  const dir = await temporaryDirectory(t);
  const { ready, port, child, ended, stdout } = await startCli(t, startOn(dir));
  t.deepEqual(ready, {
    ...{ event: "ready", role: "writer", rpc: `http://127.0.0.1:${port}` },
    ports: { rpc: port, omni: ready.ports.omni },
  });
  t.is((await ask(port, "/version")).status, 200);
  t.is((await stat(join(dir, "data", "identity.key"))).mode & 0o777, 0o600);
  child.kill("SIGINT");
  t.is(await ended, 0);
  t.is(stdout().trim().split("\n").length, 1);
});

test("the ready event has the port of the metrics, which may have drifted", async (t) => {
  const dir = await temporaryDirectory(t);
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  const taken = String((server.address() as AddressInfo).port);
  const { ready } = await startCli(t, [...startOn(dir), "--metrics-enabled", "--metrics-port", taken]);
  t.not(String(ready.ports["metrics"]), taken);
  t.is((await ask(ready.ports["metrics"]!, "/metrics")).status, 200);
});

test("by default the node listens on all addresses, IPv4 and IPv6", async (t) => {
  const dir = await temporaryDirectory(t);
  const { port } = await startCli(t, ["start", "--data-dir", dir, "--rpc-port", "0", "--log-level", "error"]);
  t.is((await ask(port, "/version")).status, 200);
  t.is((await fetch(`http://localhost:${port}/version`)).status, 200);
  t.deepEqual(await askJson(port, "/"), { message: "Hello, World!", yourIP: "127.0.0.1" });
});

test("the key and the genesis survive a restart; another genesis is rejected", async (t) => {
  const dir = await temporaryDirectory(t);
  const args = startOn(dir);
  const first = await startCli(t, [...args, "--genesis", sampleGenesis]);
  const [key, genesis] = [await ask(first.port, "/publickey"), await ask(first.port, "/genesis")];
  first.child.kill("SIGTERM");
  t.is(await first.ended, 0);
  const second = await startCli(t, args);
  t.is((await ask(second.port, "/publickey")).text, key.text);
  t.is((await ask(second.port, "/genesis")).text, genesis.text);
  second.child.kill("SIGTERM");
  await second.ended;
  const other = join(dir, "other.json");
  await writeFile(other, '{"name":"another"}');
  const { code, stdout, stderr } = await runCliProcess([...args, "--genesis", other]);
  t.is(code, 1);
  t.is(stdout, "");
  t.regex(stderr, /^gatehouse: The genesis file .*other\.json \(0x[0-9a-f]{64}\) is not the one that this database/);
});

/** Listens on a free port until the test ends. Returns the port. */
async function takePort(t: Teardown): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

test("a node uses the next port if one is taken, and /health, the log and /diagnostics report it", async (t) => {
  const dir = await temporaryDirectory(t);
  const taken = await takePort(t);
  const { port, stderr } = await startCli(t, [...startOn(dir), "--rpc-port", String(taken), "--log-level", "info"]);
  t.true(port > taken && port <= taken + 100);
  const health = await askJson<HealthBody>(port, "/health");
  t.deepEqual(health.ports.rpc, { requested: taken, actual: port, drifted: true });
  t.like(health.subsystems.rpc, { port, requestedPort: taken });
  t.is(await askJson(port, "/connectionstring"), `http://127.0.0.1:${port}` as never);
  t.regex(stderr(), new RegExp(`Port ${taken} is taken; the node listens on ${port} instead`));
  const diagnostics = await askJson<{ level: string; subsystem: string | null; message: string }[]>(
    port,
    "/diagnostics",
  );
  const found = diagnostics.find(({ message }) => message.includes("taken"));
  t.like(found, { level: "warn", subsystem: "rpc" });
});

test("--port-drift deny stops the start if a port is taken", async (t) => {
  const dir = await temporaryDirectory(t);
  const taken = await takePort(t);
  const args = [...startOn(dir), "--rpc-port", String(taken), "--port-drift", "deny"];
  const { code, stderr } = await runCliProcess(args);
  t.is(code, 1);
  t.true(
    stderr.endsWith(`gatehouse: Port ${taken} is taken; choose another --rpc-port, or --port-drift allow.\n`),
    stderr,
  );
});

test("flags override the environment, the environment the file, and the file the defaults", async (t) => {
  const dir = await temporaryDirectory(t);
  const file = join(dir, "config.yaml");
  const settings = {
    "data-dir": join(dir, "from-file"),
    "rpc-port": 0,
    host: "127.0.0.1",
    "log-level": "error",
    genesis: join(dir, "nowhere.json"),
    "public-url": "http://file.example:1",
  };
  await writeFile(file, JSON.stringify(settings));
  const args = ["start", "--config", file, "--public-url", "http://flag.example:3"];
  const env = { GATEHOUSE_PUBLIC_URL: "http://env.example:2/", GATEHOUSE_GENESIS: sampleGenesis };
  const { port } = await startCli(t, args, env);
  t.is((await ask(port, "/connectionstring")).text, '"http://flag.example:3"');
  t.is((await ask(port, "/genesis")).status, 200);
  t.true((await stat(settings["data-dir"])).isDirectory());
});

test("start rejects unknown variables, but not those of other commands", async (t) => {
  const others = { GATEHOUSE_NODE: "http://127.0.0.1:1", GATEHOUSE_KEY: "k", GATEHOUSE_CONTROL: "c" };
  const { code, stderr } = await runCliProcess(["start"], { env: { ...others, GATEHOUSE_RPC_PROT: "1" } });
  t.is(code, 2);
  t.is(
    stderr,
    "gatehouse: The environment has the variable GATEHOUSE_RPC_PROT, which is not an option; did you mean GATEHOUSE_RPC_PORT.\n",
  );
  const { stderr: next } = await runCliProcess(["start", "--role", "author"], { env: others });
  t.is(next, 'gatehouse: --role must be writer, reader or standby, not "author".\n');
});

test("start rejects a file that is not a SQLite database with one sentence", async (t) => {
  const dir = await temporaryDirectory(t);
  await mkdir(join(dir, "data"));
  await writeFile(join(dir, "data", "gatehouse.sqlite"), "this is not a database, whatever its name says".repeat(100));
  const { code, stderr } = await runCliProcess(startOn(dir));
  t.is(code, 1);
  t.regex(stderr, /^gatehouse: The file .* is not a usable SQLite database; .*\n$/);
});

test("a node finishes 200 requests in flight after SIGTERM", async (t) => {
  const dir = await temporaryDirectory(t);
  const { port, child, ended } = await startCli(t, startOn(dir));
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "x" });
  const request = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  // One third sends a part of the request line, one third all headers, and one third a part of the body.
  const parts = [10, request.length - body.length, request.length - 5];
  const open: { socket: Socket; rest: string; response: Promise<string> }[] = [];
  for (let i = 0; i < 200; i++) {
    const socket = await openSocket(t, port, request.slice(0, parts[i % 3]));
    open.push({ socket, rest: request.slice(parts[i % 3]), response: responseOf(socket) });
  }
  const grpc = connectGrpc(port);
  t.teardown(() => grpc.close());
  await grpc.call(HealthService.method.getHealth);
  await hasReadAll(port);
  child.kill("SIGTERM");
  await until(() => isPortClosed(port));
  open.forEach(({ socket, rest }) => socket.write(rest));
  const texts = await Promise.all(open.map(({ response }) => response));
  t.deepEqual(
    texts.filter((text) => !text.startsWith("HTTP/1.1 200 ") || !text.includes("-32601")),
    [],
  );
  t.is(await ended, 0);
});

/** Connects to a port and sends a text. */
async function openSocket(t: Teardown, port: number, text: string): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  t.teardown(() => socket.destroy());
  await once(socket, "connect");
  socket.on("error", () => undefined).write(text);
  return socket;
}

/** Waits until the node has read all data sent before. It accepts and reads connections in their order. */
async function hasReadAll(port: number): Promise<void> {
  await ask(port, "/version");
  await ask(port, "/version");
}

/** Returns true if no process listens on the port. */
async function isPortClosed(port: number): Promise<boolean> {
  return await ask(port, "/version").then(
    () => false,
    (error: unknown) => (error as NodeJS.ErrnoException).code === "ECONNREFUSED",
  );
}

/** Collects all data of a connection until it closes. */
function responseOf(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  return new Promise((resolve) => {
    socket.once("error", () => resolve(text));
    socket.once("close", () => resolve(text));
  });
}

test("a second SIGTERM ends the node immediately with code 143", async (t) => {
  const dir = await temporaryDirectory(t);
  const { port, child, ended } = await startCli(t, startOn(dir));
  await openSocket(t, port, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
  await hasReadAll(port);
  child.kill("SIGTERM");
  await until(() => isPortClosed(port));
  t.is(child.exitCode, null);
  child.kill("SIGTERM");
  t.is(await ended, 143);
});

test("/readyz responds with 503 and failing while the node stops", async (t) => {
  const dir = await temporaryDirectory(t);
  const { port, child, ended } = await startCli(t, startOn(dir));
  const open = await openSocket(t, port, "GET /readyz HTTP/1.1\r\nHost: a\r\n");
  const response = responseOf(open);
  await hasReadAll(port);
  child.kill("SIGTERM");
  await until(() => isPortClosed(port));
  open.write("\r\n");
  const text = await response;
  t.regex(text, /^HTTP\/1.1 503 /);
  t.regex(text, /"stopping","status":"failing"/);
  t.is(await ended, 0);
});
