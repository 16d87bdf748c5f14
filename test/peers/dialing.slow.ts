/** How often a node calls somebody of whom others say that he is a peer. */
import test from "ava";
import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";
import { createServer, type Server } from "node:net";
import { mock } from "node:test";
import { createClient } from "@connectrpc/connect";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { createDialRateLimit, DialRateLimited } from "../../src/peers/handshake/dial-rate-limit.js";
import { testKey } from "../helpers/chain/keys.js";
import { endpointOf, networkOf, peersOf, startMemberOf } from "../helpers/nodes/network.js";
import { connectStranger, type OddKey, startOddPeer } from "../helpers/nodes/odd-peer.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

const authority = testKey(1);
const { genesis, genesisHash } = networkOf(authority);

/** A machine that is no node, and how often it was called. */
async function startVictim(t: Teardown, ports: number) {
  const state = { connections: 0, endpoints: [] as string[] };
  for (let i = 0; i < ports; i++) {
    const server: Server = createServer((socket) => {
      state.connections++;
      socket.on("error", () => undefined).destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.teardown(() => server.close());
    const { port } = server.address() as { readonly port: number };
    state.endpoints.push(
      `https://127.0.0.1:${port}`,
      `https://localhost:${port}`,
      `https://[::ffff:127.0.0.1]:${port}`,
    );
  }
  return state;
}

/** Has so many identities name endpoints, each ten times: one of them after the other. */
async function nameAll(t: Teardown, port: number, identities: number, endpoints: readonly string[]): Promise<void> {
  await Promise.all(
    Array.from({ length: identities }, async (_, i) => {
      const stranger = connectStranger(t, port, strangerKey(i));
      for (let n = 0; n < 10; n++) {
        await stranger.handshake({ endpoint: endpoints[(i + n) % endpoints.length]!, genesisHash });
      }
    }),
  );
}

function strangerKey(i: number): OddKey {
  const seed = createHash("sha256").update(`stranger ${i}`).digest();
  const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]);
  const privateKey = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  const raw = createPublicKey(privateKey).export({ format: "der", type: "spki" }).subarray(-32);
  return { publicKey: `0x${raw.toString("hex")}`, privateKey, sign: (bytes) => sign(null, bytes, privateKey) };
}

/** Most connections in a time that began so long ago: eight, and one more every ten seconds. */
const mostSince = (startMs: number): number => 8 + Math.ceil((Date.now() - startMs) / 10_000);

for (const [what, ports] of [
  ["one endpoint", 1],
  ["twenty ports of one machine, under three names each", 20],
] as const) {
  test.serial(`twenty identities that name ${what} have it called a few times, not hundreds`, async (t) => {
    const node = await startMemberOf(t, { key: authority, genesis });
    const victim = await startVictim(t, ports);
    const startMs = Date.now();
    await nameAll(t, node.ports["omni"]!, 20, victim.endpoints);
    t.log(`200 handshakes, ${victim.connections} connections`);
    t.true(victim.connections >= 1);
    t.true(victim.connections <= mostSince(startMs), `${victim.connections}`);
  });
}

test.serial("nor does an operator who names it again and again, or forgets it in between", async (t) => {
  const interval = 5;
  const node = await startMemberOf(t, { key: authority, genesis, flags: { "loop-interval": String(interval) } });
  const victim = await startVictim(t, 1);
  const control = createClient(ControlService, node.control);
  const [endpoint] = victim.endpoints as [string];
  const startMs = Date.now();
  for (let i = 0; i < 20; i++) {
    await control.addPeer({ endpoint });
    await control.removePeer({ endpoint });
  }
  t.true(victim.connections <= 1 + Math.floor((Date.now() - startMs) / (interval * 500)), `${victim.connections}`);
});

test.serial(
  "a peer that is in touch is not asked because strangers name its endpoint, and stays in touch",
  async (t) => {
    const node = await startMemberOf(t, { key: authority, genesis, flags: { "loop-interval": "5" } });
    let asked = 0;
    const peer = await startOddPeer(t, {
      key: testKey(7),
      genesisHash,
      status() {
        asked++;
        return {};
      },
    });
    const holder = connectStranger(t, node.ports["omni"]!, testKey(7));
    await holder.handshake({ endpoint: peer.endpoint, genesisHash });
    await until(async () => (await peersOf(node))[0]?.verification.status === true);
    const [before, startMs] = [asked, Date.now()];
    await nameAll(t, node.ports["omni"]!, 5, [peer.endpoint]);
    t.true(asked - before <= 1 + Math.ceil((Date.now() - startMs) / 2_500), `${asked - before}`);
    t.true((await peersOf(node))[0]!.status.online);
  },
);

test.serial("whoever comes back is dialed back, also where a flood names others", async (t) => {
  const node = await startMemberOf(t, { key: authority, genesis });
  const victim = await startVictim(t, 1);
  const flood = nameAll(t, node.ports["omni"]!, 5, victim.endpoints);
  const honest = await startMemberOf(t, { key: testKey(8), genesis, seeds: [endpointOf(node)] });
  await flood;
  await until(async () =>
    (await peersOf(honest)).some(({ verification, status }) => verification.status && status.online),
  );
  // The flood has had what one address may have at once; more comes with time.
  await until(async () => (await peersOf(node)).some(({ connection }) => connection.string === honest.rpcUrl));
  t.pass();
});

test("an endpoint has its turn once in a while, and an address so many connections", (t) => {
  const clock = { nowMs: 1_000_000 };
  const stopped = mock.method(performance, "now", () => clock.nowMs);
  t.teardown(() => stopped.mock.restore());
  const pace = createDialRateLimit(5_000);
  const count = (work: () => void): number => {
    let counted = 0;
    for (let i = 0; i < 1_000; i++) {
      try {
        work();
        counted++;
      } catch (error) {
        t.true(error instanceof DialRateLimited);
      }
    }
    return counted;
  };
  t.true(pace.tryDial("https://a:1"));
  t.false(pace.tryDial("https://a:1"));
  t.false(pace.tryDialBack("https://a:1"));
  t.true(pace.tryDialBack("https://b:1"));
  clock.nowMs += 2_500;
  t.true(pace.tryDial("https://a:1"));

  t.is(
    count(() => pace.countConnection("192.0.2.1", false)),
    8,
  );
  t.is(
    count(() => pace.countConnection("::ffff:192.0.2.1", false)),
    0,
  );
  t.is(
    count(() => pace.countConnection("192.0.2.2", false)),
    8,
  );
  t.is(
    count(() => pace.countConnection("2001:db8::1", false)),
    8,
  );
  t.is(
    count(() => pace.countConnection("2001:db8:0:0:ffff::2", false)),
    0,
  );
  t.is(
    count(() => pace.countConnection("2001:db8:0:1::1", false)),
    8,
  );
  // Those who were verified there are counted by themselves.
  t.is(
    count(() => pace.countConnection("192.0.2.1", true)),
    64,
  );
  clock.nowMs += 10_000;
  t.is(
    count(() => pace.countConnection("192.0.2.1", false)),
    1,
  );
  t.is(
    count(() => pace.countConnection("192.0.2.1", true)),
    10,
  );

  let atOnce = 0;
  for (let port = 1; port < 1_000; port++) {
    atOnce += pace.tryDialBack(`https://c:${port}`) ? 1 : 0;
  }
  t.is(atOnce, 32);
  // A clock that is set back gives nothing, and takes nothing for ever.
  clock.nowMs -= 3_600_000;
  t.is(
    count(() => pace.countConnection("192.0.2.1", false)),
    0,
  );
});
