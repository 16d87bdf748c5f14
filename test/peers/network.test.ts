/** Peers of a running node: verification, liveness, rejections and the peers file. */
import test from "ava";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { sha256 } from "../../src/base/crypto/hash.js";
import { testKey } from "../helpers/chain/keys.js";
import {
  endpointOf,
  healthOf,
  networkOf,
  peersOf,
  startMemberOf,
  untilPeerIs,
  untilPolled,
  untilReady,
} from "../helpers/nodes/network.js";
import { startOddPeer } from "../helpers/nodes/odd-peer.js";
import { ask } from "../helpers/wire/plain-client.js";
import { silentPeer, startTestNode } from "../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { freePort } from "../helpers/nodes/free-port.js";
import { openSqlite } from "../helpers/databases/databases.js";

const { genesis } = networkOf(testKey(1));

test("two nodes verify each other, and notice when the other one stops", async (t) => {
  const startMs = Date.now();
  const first = await startMemberOf(t, { key: testKey(1), genesis });
  const second = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(first)] });
  for (const [node, other] of [
    [first, second],
    [second, first],
  ] as const) {
    await untilReady(node);
    const [seen] = await peersOf(node);
    t.like(seen, {
      connection: { string: other.rpcUrl },
      identity: other.publicKey,
      verification: { status: true, message: null },
      sync: { status: true, block: 0 },
    });
    const verifiedMs = seen!.verification.timestamp!;
    t.true(startMs <= verifiedMs && verifiedMs <= Date.now());
    t.regex(seen!.sync.block_hash!, /^0x[0-9a-f]{64}$/);
    const before = seen!.status.timestamp!;
    await until(async () => (await peersOf(node))[0]!.status.timestamp! > before);
  }
  await first.stop();
  await until(async () => !(await peersOf(second))[0]!.status.online);
  const offline = { identity: first.publicKey, status: { ready: false }, sync: { status: false, block: 0 } };
  t.like((await peersOf(second))[0], { ...offline, verification: { status: true } });
  // No peer is left that knows the latest block.
  t.false((await healthOf(second)).accepting);
});

test("rejects a peer of another network, with an unexpected key, or the node itself, with the reason", async (t) => {
  const other = '{"name":"other"}';
  const foreign = await startMemberOf(t, { key: testKey(3), genesis: other });
  const impostor = await startMemberOf(t, { key: testKey(4), genesis });
  const omni = await freePort();
  const expected = `0x${"1".repeat(64)}`;
  const itself = /this node itself|this node's own address/;
  const cases = [
    [
      endpointOf(foreign),
      new RegExp(`another network: its genesis is ${sha256(other)}, .* ${sha256(genesis)}\\..* join URL`),
    ],
    [{ url: endpointOf(impostor), identity: expected }, new RegExp(`proved the identity ${impostor.publicKey}`)],
    [`https://127.0.0.1:${omni}`, itself],
    [`https://localhost:${omni}`, itself],
  ] as const;
  const seeds = cases.map(([seed]) => seed);
  const node = await startMemberOf(t, { key: testKey(1), genesis, seeds, flags: { "omni-port": String(omni) } });
  for (const [i, [, reason]] of cases.entries()) {
    await untilPeerIs(node, reason, i);
    t.like((await peersOf(node))[i], { verification: { status: false, timestamp: null }, status: { ready: false } });
  }
  t.is((await peersOf(node))[1]!.identity, expected);
  await untilPolled(node);
  const lines = (await ask(node.port, "/diagnostics")).text.split("is rejected: The peer belongs to another");
  t.is(lines.length, 2, "one line, however often the peer is dialed");
});

test("a peer that reports other text than a hash as its genesis gets none of it shown", async (t) => {
  const peer = await startOddPeer(t, { key: testKey(50), genesisHash: "run this: rm" });
  const node = await startMemberOf(t, { key: testKey(1), genesis, seeds: [peer.endpoint] });
  await untilPeerIs(node, /its genesis is no hash, and this node's is 0x/);
  t.false((await ask(node.port, "/diagnostics")).text.includes("run this"));
});

test("a peer that accepts connections and never responds delays neither other peers nor the main loop", async (t) => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket)).listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.teardown(() => {
    silent.close();
    sockets.forEach((socket) => socket.destroy());
  });
  const peer = await startMemberOf(t, { key: testKey(1), genesis });
  const silentUrl = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const node = await startMemberOf(t, { key: testKey(2), genesis, seeds: [silentUrl, endpointOf(peer)] });
  await until(async () => (await peersOf(node))[1]!.status.online);
  t.like((await peersOf(node))[0], { status: { online: false }, identity: "" });
  await until(async () => (await healthOf(node)).accepting);
  t.is((await healthOf(node)).status, "ok");
});

test("verified peers survive a restart without the peers file", async (t) => {
  const first = await startMemberOf(t, { key: testKey(1), genesis });
  const second = await startMemberOf(t, { key: testKey(2), genesis, seeds: [endpointOf(first)] });
  await until(async () => (await peersOf(second))[0]!.verification.status);
  const { verification } = (await peersOf(second))[0]!;
  await second.stop();
  const again = await startMemberOf(t, { key: testKey(2), genesis, dir: second.dir });
  t.false(again.dormant);
  const [stored] = await peersOf(again);
  t.is(stored!.identity, first.publicKey);
  t.true(stored!.verification.timestamp! >= verification.timestamp!);
  await untilReady(again);
});

test("without TLS, nodes verify each other by the handshake, and http and https do not mix", async (t) => {
  const flags = { "omni-tls": "off" };
  const first = await startMemberOf(t, { key: testKey(1), genesis, flags });
  const url = endpointOf(first).replace("https", "http");
  const second = await startMemberOf(t, { key: testKey(2), genesis, seeds: [url], flags });
  await untilReady(first);
  await untilReady(second);
  const mixed = startMemberOf(t, { key: testKey(3), genesis, seeds: [url] });
  await t.throwsAsync(mixed, { message: /must start with https:\/\// });
});

test("an invalid --omni-url stops the start, and an unreachable one causes a warning", async (t) => {
  const seeds = [endpointOf(await startMemberOf(t, { key: testKey(1), genesis }))];
  const start = (flags: Readonly<Record<string, string | boolean>>, key = testKey(2)) =>
    startMemberOf(t, { key, genesis, seeds, flags });
  for (const [url, message] of [
    ["http://node.example:1", /--omni-url is invalid\. .* must start with https/],
    ["https://node.example:0", /--omni-url is invalid\. .* must have the form/],
  ] as const) {
    await t.throwsAsync(start({ "omni-url": url }), { message });
  }
  const strict = { "allow-private-peers": false };
  const warning = /Other machines cannot reach this node at https:\/\/127\.0\.0\.1:\d+; set --public-url/;
  t.regex((await start(strict)).warnings.join(), warning);
  const named = await start({ ...strict, "omni-url": "https://Node.Example:53551/" }, testKey(3));
  t.deepEqual(named.warnings, []);
});

test("a failing task is counted and reported, and stops nothing else", async (t) => {
  const node = await startMemberOf(t, { key: testKey(1), genesis, seeds: [silentPeer] });
  const database = openSqlite(t, node.databaseFile);
  await database.schema.renameTable("peers", "peers_elsewhere");
  const loop = async () => (await healthOf(node)).subsystems["main_loop"]!;
  await until(async () => ((await loop()).extra?.taskErrors ?? 0) >= 2);
  const failing = await loop();
  t.like(failing, { status: "ready", lastError: { source: "address book" } });
  t.regex(failing.lastError!.message, /^Task address book: /);
  await database.schema.renameTable("peers_elsewhere", "peers");
  await until(async () => (await loop()).lastError === null, "the error ends with its cause");
  await untilPolled(node, 2);
  // The peer that could not be stored before is stored now.
  await until(async () => ((await database("peers").select("endpoint")) as unknown[]).length === 1);
});

const lowOrder = `0x${"0".repeat(64)}`;
for (const [label, content, expected] of [
  ["no JSON", "[", /json is not JSON at line 1, column 2: the text ends\.$/],
  ["bytes that are not UTF-8", Buffer.from('[{"url":"https://\xe9:1"}]', "latin1"), /json is not UTF-8 text\.$/],
  ["two URLs of one peer", '[{"url":"https://a:1","url":"https://b:1"}]', /json has two members with the name "url"/],
  ["no array", "{}", /must hold a JSON array of /],
  ["a path in a URL", '[{"url":"https://a:1/x"}]', /check entry 0\.url/],
  ["an unknown key", '[{"url":"https://a:1"},{"url":"https://b:1","name":"b"}]', /check entry 1/],
  ["a low-order key", `[{"url":"https://a:1","identity":"${lowOrder}"}]`, /check entry 0\.identity/],
  ["an invalid identity", '[{"url":"https://a:1","identity":"0x1"}]', /check entry 0\.identity/],
] as const) {
  test(`a peers file with ${label} stops the start`, async (t) => {
    const peers = join(await temporaryDirectory(t), "peers.json");
    await writeFile(peers, content);
    const { message } = await t.throwsAsync(startTestNode(t, { peers }));
    t.regex(message, expected);
    t.true(message.startsWith(`The peers file ${peers} `));
  });
}
