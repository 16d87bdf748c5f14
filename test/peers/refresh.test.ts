import test from "ava";
import { createServer } from "node:net";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { askJson } from "../helpers/plain-client.js";
import { startTestNode, type Teardown, temporaryDirectory, type TestNode } from "../helpers/start-node.js";
import { until } from "../helpers/until.js";

interface PeerJson {
  readonly connection: { readonly string: string };
  readonly identity: string;
  readonly verification: { readonly status: boolean; readonly message: string };
  readonly sync: { readonly status: boolean; readonly block: number; readonly block_hash: string };
  readonly status: { readonly online: boolean; readonly timestamp: number; readonly ready: boolean };
}

async function startMember(
  t: Teardown,
  genesis: string,
  peers: readonly { readonly url: string; readonly identity?: string }[],
): Promise<TestNode> {
  const dir = await temporaryDirectory(t);
  await writeFile(join(dir, "genesis.json"), genesis);
  await writeFile(join(dir, "peers.json"), JSON.stringify(peers));
  return await startTestNode(
    t,
    { genesis: join(dir, "genesis.json"), peers: join(dir, "peers.json"), "loop-interval": "0.1" },
    dir,
  );
}

async function peersOf(node: TestNode): Promise<PeerJson[]> {
  return await askJson<PeerJson[]>(node.port, "/peerlist");
}

test("a peer is online while it answers, and offline after it stopped, with when it was last seen", async (t) => {
  const peer = await startMember(t, "{}", []);
  const node = await startMember(t, "{}", [{ url: peer.rpcUrl }]);
  await until(async () => (await peersOf(node))[0]!.status.online);
  const [seen] = await peersOf(node);
  t.is(seen!.connection.string, peer.rpcUrl);
  t.is(seen!.identity, peer.publicKey);
  t.is(seen!.sync.block, 0);
  t.regex(seen!.sync.block_hash, /^0x[0-9a-f]{64}$/);
  t.true(Math.abs(Date.now() - seen!.status.timestamp) < 10_000);
  await until(async () => (await peersOf(node))[0]!.status.timestamp > seen!.status.timestamp);

  const stoppedMs = Date.now();
  await peer.stop();
  await until(async () => !(await peersOf(node))[0]!.status.online);
  const [gone] = await peersOf(node);
  t.like(gone, {
    identity: peer.publicKey,
    status: { online: false, ready: false },
    sync: { status: false, block: 0 },
  });
  t.true(gone!.status.timestamp <= stoppedMs + 1_000);
  t.is((await askJson(node.port, "/health"))["status"], "ok");
});

test("a peer of another network, or with another identity than expected, is told of as such", async (t) => {
  const foreign = await startMember(t, '{"name":"other"}', []);
  const impostor = await startMember(t, "{}", []);
  const node = await startMember(t, "{}", [
    { url: foreign.rpcUrl },
    { url: impostor.rpcUrl, identity: `0x${"1".repeat(64)}` },
  ]);
  await until(async () => (await peersOf(node)).every(({ status }) => status.online));
  const [first, second] = await peersOf(node);
  t.regex(first!.verification.message, /another network/);
  t.false(first!.status.ready);
  t.regex(second!.verification.message, new RegExp(`names itself ${impostor.publicKey}`));
  t.is(second!.identity, `0x${"1".repeat(64)}`);
  t.deepEqual([first!.verification.status, second!.verification.status], [false, false]);
});

test("a peer that takes the connection and says nothing holds up neither the others nor the loop", async (t) => {
  const silent = createServer((socket) => t.teardown(() => socket.destroy())).listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.teardown(() => silent.close());
  const peer = await startMember(t, "{}", []);
  const silentUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const node = await startMember(t, "{}", [{ url: silentUrl }, { url: peer.rpcUrl }]);
  await until(async () => (await peersOf(node))[1]!.status.online);
  t.like((await peersOf(node))[0], { status: { online: false }, identity: "" });
  t.is((await askJson(node.port, "/health"))["status"], "ok");
});

const refused: readonly (readonly [string, string, RegExp])[] = [
  ["no JSON", "[", /cannot be read: /],
  ["no array", "{}", /must hold a JSON array of /],
  ["a path in a URL", '[{"url":"http://a:1/x"}]', /look at entry 0\.url/],
  ["an unknown key", '[{"url":"http://a:1"},{"url":"http://b:1","name":"b"}]', /look at entry 1/],
  ["an identity that is none", '[{"url":"http://a:1","identity":"0x1"}]', /look at entry 0\.identity/],
];
for (const [what, content, expected] of refused) {
  test(`a peers file with ${what} stops the start`, async (t) => {
    const peers = join(await temporaryDirectory(t), "peers.json");
    await writeFile(peers, content);
    const { message } = await t.throwsAsync(startTestNode(t, { peers }));
    t.regex(message, expected);
    t.true(message.startsWith(`The peers file ${peers} `));
  });
}
