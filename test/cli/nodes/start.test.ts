/** `gatehouse start`, as a process: what it prints, how it is configured, how it stops. */
import test from "ava";
import { once } from "node:events";
import { mkdir, stat, writeFile } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { HealthService } from "../../../gen/gatehouse/health/v1/health_pb.js";
import type { HealthBody } from "../../helpers/process/health-shape.js";
import { connectGrpc } from "../../helpers/wire/grpc-client.js";
import { ask, askJson } from "../../helpers/wire/plain-client.js";
import { runCliProcess } from "../../helpers/nodes/run-cli.js";
import { startCli } from "../../helpers/nodes/start-cli.js";
import { sampleGenesis } from "../../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { until } from "../../helpers/nodes/until.js";

const quiet = ["--log-level", "error", "--host", "127.0.0.1", "--omni-port", "0"] as const;

test("the first line on stdout says where the node listens", async (t) => {
  const dir = await temporaryDirectory(t);
  const { ready, port, child, ended, stdout } = await startCli(t, [
    "start",
    "--data-dir",
    dir,
    "--rpc-port",
    "0",
    ...quiet,
  ]);
  t.deepEqual(ready, {
    ...{ event: "ready", role: "writer", rpc: `http://127.0.0.1:${port}` },
    ports: { rpc: port, omni: ready.ports.omni },
  });
  t.is((await ask(port, "/version")).status, 200);
  t.is((await stat(join(dir, "identity.key"))).mode & 0o777, 0o600);
  child.kill("SIGINT");
  t.is(await ended, 0);
  t.is(stdout().trim().split("\n").length, 1);
});

test("by default it listens on every address, IPv4 and IPv6", async (t) => {
  const dir = await temporaryDirectory(t);
  const { port } = await startCli(t, ["start", "--data-dir", dir, "--rpc-port", "0", "--log-level", "error"]);
  t.is((await ask(port, "/version")).status, 200);
  t.is((await fetch(`http://localhost:${port}/version`)).status, 200);
  t.deepEqual(await askJson(port, "/"), { message: "Hello, World!", yourIP: "127.0.0.1" });
});

test("the key and the chain outlive a restart; another genesis is refused", async (t) => {
  const dir = await temporaryDirectory(t);
  const args = ["start", "--data-dir", join(dir, "data"), "--rpc-port", "0", ...quiet];
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

/** Takes a port until the test ends. */
async function takePort(t: Teardown): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

test("a taken port drifts to the next free one, and everything says so", async (t) => {
  const dir = await temporaryDirectory(t);
  const taken = await takePort(t);
  const { port, stderr } = await startCli(t, [
    ...["start", "--data-dir", dir, "--rpc-port", String(taken), "--omni-port", "0", "--host", "127.0.0.1"],
  ]);
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
  t.true(
    diagnostics.some(
      ({ level, subsystem, message }) => level === "warn" && subsystem === "rpc" && message.includes("taken"),
    ),
  );
});

test("--port-drift deny refuses a taken port", async (t) => {
  const dir = await temporaryDirectory(t);
  const taken = await takePort(t);
  const { code, stderr } = await runCliProcess([
    ...["start", "--data-dir", dir, "--rpc-port", String(taken), "--port-drift", "deny", ...quiet],
  ]);
  t.is(code, 1);
  t.true(
    stderr.endsWith(`gatehouse: Port ${taken} is taken; choose another --rpc-port, or --port-drift allow.\n`),
    stderr,
  );
});

test("flags win over the environment, the environment over the file, the file over defaults", async (t) => {
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

test("a variable that is no option is refused; those that other commands read are not", async (t) => {
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

test("a database that another node made, or that is none, is refused in one sentence", async (t) => {
  const dir = await temporaryDirectory(t);
  await mkdir(join(dir, "data"));
  await writeFile(join(dir, "data", "gatehouse.sqlite"), "this is not a database, whatever its name says".repeat(100));
  const { code, stderr } = await runCliProcess(["start", "--data-dir", join(dir, "data"), "--rpc-port", "0", ...quiet]);
  t.is(code, 1);
  t.regex(stderr, /^gatehouse: The file .* is not a usable SQLite database; .*\n$/);
});

test("SIGTERM loses none of 200 requests in flight", async (t) => {
  const dir = await temporaryDirectory(t);
  const { port, child, ended } = await startCli(t, ["start", "--data-dir", dir, "--rpc-port", "0", ...quiet]);
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "x" });
  const answers: Promise<string>[] = [];
  const rests: (() => unknown)[] = [];
  for (let i = 0; i < 200; i++) {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    // A third has sent half a line, a third all headers, a third half a body.
    const whole = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const sent = whole.slice(0, [10, whole.length - body.length, whole.length - 5][i % 3]);
    socket.write(sent);
    answers.push(answerOf(socket));
    rests.push(() => socket.write(whole.slice(sent.length)));
  }
  const grpc = connectGrpc(port);
  t.teardown(() => grpc.close());
  await grpc.call(HealthService.method.getHealth);
  await hasReadAll(port);
  child.kill("SIGTERM");
  await until(() => isRefused(port));
  rests.forEach((send) => send());
  const texts = await Promise.all(answers);
  t.is(texts.length, 200);
  t.deepEqual(
    texts.filter((text) => !text.startsWith("HTTP/1.1 200 ") || !text.includes("-32601")),
    [],
  );
  t.is(await ended, 0);
});

/** Resolves when the node has read what was sent before: it takes connections, and what is on them, in their order. */
async function hasReadAll(port: number): Promise<void> {
  await ask(port, "/version");
  await ask(port, "/version");
}

/** Whether nobody listens at the port any more. */
async function isRefused(port: number): Promise<boolean> {
  return await ask(port, "/version").then(
    () => false,
    (error: unknown) => (error as NodeJS.ErrnoException).code === "ECONNREFUSED",
  );
}

function answerOf(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  return new Promise((resolve) => {
    socket.once("error", () => resolve(text));
    socket.once("close", () => resolve(text));
  });
}

test("a second signal ends the node at once", async (t) => {
  const dir = await temporaryDirectory(t);
  const { port, child, ended } = await startCli(t, ["start", "--data-dir", dir, "--rpc-port", "0", ...quiet]);
  const socket = connect(port, "127.0.0.1");
  t.teardown(() => socket.destroy());
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
  await hasReadAll(port);
  child.kill("SIGTERM");
  await until(() => isRefused(port));
  t.is(child.exitCode, null);
  child.kill("SIGTERM");
  t.is(await ended, 143);
});

test("a node that stops says that it is not ready", async (t) => {
  const dir = await temporaryDirectory(t);
  const { port, child, ended } = await startCli(t, ["start", "--data-dir", dir, "--rpc-port", "0", ...quiet]);
  const open = connect(port, "127.0.0.1");
  await once(open, "connect");
  const answer = answerOf(open);
  open.write("GET /readyz HTTP/1.1\r\nHost: a\r\n");
  await hasReadAll(port);
  child.kill("SIGTERM");
  await until(() => isRefused(port));
  open.write("\r\n");
  const text = await answer;
  t.regex(text, /^HTTP\/1.1 503 /);
  t.regex(text, /"stopping","status":"failing"/);
  t.is(await ended, 0);
});
