/** Node with a low limit on open files. Requires Linux, whose /proc has the open files of a process. */
import { readdir } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { testKey } from "../helpers/chain/keys.js";
import { chainClient, include, newProgram } from "../helpers/chain/submit.js";
import { type RunningCli, shippedPath, startCli } from "../helpers/nodes/run-cli.js";
import { authorityDirectory } from "../helpers/nodes/start-node.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";

const [authority, alice] = [testKey(1), testKey(2)];
const testOnLinux = testUnless(process.platform === "linux" ? undefined : "only Linux lists the open files in /proc");

async function startLimited(t: Teardown, limit: number, ...more: string[]): Promise<RunningCli> {
  const dir = await authorityDirectory(t, authority);
  const ports = ["--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0", "--log-level", "warn", ...more];
  const args = ["start", "--recover", "--data-dir", dir, "--genesis", join(dir, "genesis.json"), ...ports];
  return await startCli(t, args, {}, ["sh", "-c", `ulimit -n ${limit} && exec "$@"`, "sh"], shippedPath);
}

/** Opens a connection that sends a request, and stays open. Resolves once it has a response, or is closed. */
function openConnection(t: Teardown, port: number, localAddress: string): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  t.teardown(() => socket.destroy());
  socket.on("error", () => undefined);
  socket.write("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
  return new Promise((resolve) => {
    socket.once("data", () => resolve(socket));
    socket.once("close", () => resolve(socket));
  });
}

testOnLinux("probes and the database work under 256 open files with 512 connections", async (t) => {
  const node = await startLimited(t, 256, "--metrics-port", "0", "--metrics-enabled");
  const client = chainClient(node);
  let mostOpen = 0;
  const count = async (): Promise<void> => {
    mostOpen = Math.max(mostOpen, (await readdir(`/proc/${node.child.pid}/fd`)).length);
  };
  const addresses = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"];
  const open = Promise.all(
    Array.from({ length: 512 }, (_, i) => openConnection(t, node.port, addresses[i % addresses.length]!)),
  );
  for (let nonce = 1; nonce <= 5; nonce++) {
    t.is((await ask(node.port, "/health")).status, 200);
    t.is((await ask(node.port, "/readyz")).status, 200);
    await include(client, newProgram(alice, nonce));
    t.is((await ask(node.port, `/chain/blocks/${nonce}`)).status, 200);
    await count();
  }
  await open;
  await count();
  t.true(mostOpen <= 200, `${mostOpen} open files`);
  t.is((await ask(node.port, "/health")).status, 200);
  const { ports } = await askJson<{ ports: { metrics: { actual: number } } }>(node.port, "/health");
  const limit = /^gatehouse_max_connections (\d+)$/m.exec((await ask(ports.metrics.actual, "/metrics")).text)?.[1];
  t.is(limit, "70");
  await until(() => node.stderr().includes("The public port accepts at most 70 connections instead of 4000"));
  t.notRegex(node.stderr(), /EMFILE|SQLITE/);
});

testOnLinux("a start with too few open files ends with the limit, the need and the remedy", async (t) => {
  await t.throwsAsync(startLimited(t, 64), {
    message:
      /ended with 1: .*may have 64 open files, and a node needs at least 192; raise the limit: `ulimit -n 65536`/,
  });
});
