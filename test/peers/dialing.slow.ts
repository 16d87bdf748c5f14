/** The rate at which a node dials endpoints that strangers announce. */
import test from "ava";
import { createServer, type Server } from "node:net";
import { createClient } from "@connectrpc/connect";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { testKey } from "../helpers/chain/keys.js";
import { endpointOf, networkOf, peersOf, startMemberOf } from "../helpers/nodes/network.js";
import { connectStranger, startOddPeer } from "../helpers/nodes/odd-peer.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

const authority = testKey(1);
const { genesis, genesisHash } = networkOf(authority);

/** Starts servers that are not nodes, and counts their connections. Each one has three endpoint names. */
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

/** Sends ten handshakes from each identity, which announce the endpoints in turn. */
async function announceAll(t: Teardown, port: number, identities: number, endpoints: readonly string[]): Promise<void> {
  await Promise.all(
    Array.from({ length: identities }, async (_, i) => {
      const stranger = connectStranger(t, port, testKey(100 + i));
      for (let n = 0; n < 10; n++) {
        await stranger.handshake({ endpoint: endpoints[(i + n) % endpoints.length]!, genesisHash });
      }
    }),
  );
}

/** The maximum number of connections since a time in ms: 8, and one more every 10 s. */
const maxConnectionsSince = (startMs: number): number => 8 + Math.ceil((Date.now() - startMs) / 10_000);

for (const [label, ports] of [
  ["one endpoint", 1],
  ["twenty ports of one machine, under three names each", 20],
] as const) {
  test.serial(`twenty identities that announce ${label} cause only a few connections`, async (t) => {
    const node = await startMemberOf(t, { key: authority, genesis });
    const victim = await startVictim(t, ports);
    const startMs = Date.now();
    await announceAll(t, node.ports["omni"]!, 20, victim.endpoints);
    t.log(`200 handshakes, ${victim.connections} connections`);
    t.true(victim.connections >= 1);
    t.true(victim.connections <= maxConnectionsSince(startMs), `${victim.connections}`);
  });
}

test.serial("an operator who adds and removes an endpoint repeatedly causes only a few connections", async (t) => {
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

test.serial("strangers who announce the endpoint of an online peer do not cause extra polls", async (t) => {
  const node = await startMemberOf(t, { key: authority, genesis, flags: { "loop-interval": "5" } });
  let polls = 0;
  const peer = await startOddPeer(t, {
    key: testKey(7),
    genesisHash,
    status() {
      polls++;
      return {};
    },
  });
  const holder = connectStranger(t, node.ports["omni"]!, testKey(7));
  await holder.handshake({ endpoint: peer.endpoint, genesisHash });
  await until(async () => (await peersOf(node))[0]?.verification.status === true);
  const [before, startMs] = [polls, Date.now()];
  await announceAll(t, node.ports["omni"]!, 5, [peer.endpoint]);
  t.true(polls - before <= 1 + Math.ceil((Date.now() - startMs) / 2_500), `${polls - before}`);
  t.true((await peersOf(node))[0]!.status.online);
});

test.serial("dials back an honest node during a flood of other announcements", async (t) => {
  const node = await startMemberOf(t, { key: authority, genesis });
  const victim = await startVictim(t, 1);
  const flood = announceAll(t, node.ports["omni"]!, 5, victim.endpoints);
  const honest = await startMemberOf(t, { key: testKey(8), genesis, seeds: [endpointOf(node)] });
  await flood;
  await until(async () =>
    (await peersOf(honest)).some(({ verification, status }) => verification.status && status.online),
  );
  // The flood has used up the burst of its address; capacity returns with time.
  await until(async () => (await peersOf(node)).some(({ connection }) => connection.string === honest.rpcUrl));
  t.pass();
});
