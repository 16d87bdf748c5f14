/** A node ends in time although a notary, a peer or an attestation keeps it waiting. */
import test from "ava";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { testKey, writeKey } from "../helpers/chain/keys.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { notaryKey } from "../helpers/process/presentation.js";
import { startCli } from "../helpers/nodes/run-cli.js";
import { authorityDirectory } from "../helpers/nodes/start-node.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { eventually, until } from "../helpers/nodes/until.js";

/** Starts a server that accepts connections and never responds. */
async function startSilent(t: Teardown) {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.on("error", () => undefined).resume();
    t.teardown(() => socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}

/** The grace period of a node for requests in flight, with a margin for a busy machine. */
const endsWithinMs = 20_000;

for (const isSynced of [true, false]) {
  test(`${isSynced ? "an authority" : "a node that syncs"} ends while notary and peer never respond`, async (t) => {
    const [notary, peer] = [await startSilent(t), await startSilent(t)];
    const dir = await authorityDirectory(t, testKey(1), ...(isSynced ? [] : [testKey(2)]));
    await writeFile(join(dir, "peers.json"), JSON.stringify([{ url: `https://127.0.0.1:${peer.port}` }]));
    const node = await startCli(t, [
      ...["start", "--data-dir", dir, "--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0"],
      ...["--allow-private-peers", "--loop-interval", "0.1", "--tlsnotary-enabled", "--notary-keys", notaryKey],
      ...["--notary-url", `http://127.0.0.1:${notary.port}`, "--mcp-enabled", "--mcp-port", "0"],
    ]);
    await until(() => notary.connections() > 0 && peer.connections() > 0);
    await eventually("the verifier runs", async () => {
      const { running } = await askJson<{ running: boolean }>(node.port, "/tlsnotary/info");
      return running;
    });
    const startedMs = Date.now();
    node.child.kill("SIGTERM");
    t.is(await node.ended, 0, node.stderr());
    t.true(Date.now() - startedMs < endsWithinMs, `${Date.now() - startedMs} ms`);
    await t.throwsAsync(ask(node.port, "/livez"));
  });
}

test("a node ends while the peer it follows is frozen, and attestations are being verified", async (t) => {
  const flags = ["--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0", "--allow-private-peers"];
  const loopFlags = ["--loop-interval", "0.1"];
  const authority = await authorityDirectory(t, testKey(1));
  const peer = await startCli(t, ["start", "--data-dir", authority, ...flags, ...loopFlags, "--recover"]);
  const dir = await authorityDirectory(t, testKey(1));
  await writeKey(join(dir, "identity.key"), testKey(2));
  await writeFile(join(dir, "peers.json"), JSON.stringify([{ url: `https://127.0.0.1:${peer.ready.ports.omni}` }]));
  const node = await startCli(t, [
    ...["start", "--data-dir", dir, ...flags, ...loopFlags],
    ...["--tlsnotary-enabled", "--notary-keys", notaryKey],
  ]);
  await eventually("the node follows its peer", async () => {
    const { accepting } = await askJson<{ accepting: boolean }>(node.port, "/health");
    return accepting;
  });
  peer.child.kill("SIGSTOP");
  t.teardown(() => peer.child.kill("SIGKILL"));
  // The next calls of the node to its peer hang.
  await sleep(500);
  const body = JSON.stringify({ attestation: Buffer.alloc(300_000, 7).toString("base64") });
  const headers = { "Content-Type": "application/json" };
  const verified = Promise.allSettled(
    Array.from({ length: 20 }, () => ask(node.port, "/tlsnotary/verify", { method: "POST", headers, body })),
  );
  const startedMs = Date.now();
  node.child.kill("SIGTERM");
  t.is(await node.ended, 0, node.stderr());
  t.true(Date.now() - startedMs < endsWithinMs, `${Date.now() - startedMs} ms`);
  await verified;
});
