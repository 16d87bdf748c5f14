/** Readiness of a node that cannot follow: it waits for the tolerated time. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { Health, HealthCheckResponse_ServingStatus as Serving } from "../../gen/health/v1/health_pb.js";
import { testKey } from "../helpers/chain/keys.js";
import { makeBlocks, networkOf, startMemberOf, statusAt } from "../helpers/nodes/network.js";
import { startOddPeer } from "../helpers/nodes/odd-peer.js";
import { ask } from "../helpers/wire/plain-client.js";

const authority = testKey(1);
const { genesis, genesisHash } = networkOf(authority);

test("a node that never gets a block is ready for a while, and then not, also for a client that watches", async (t) => {
  const blocks = await makeBlocks(t, authority, 1);
  const peer = await startOddPeer(t, {
    ...{ key: testKey(50), genesisHash, status: () => statusAt(blocks.at(-1)) },
    blocks: () => new Promise(() => undefined),
  });
  const node = await startMemberOf(t, { key: testKey(3), genesis, seeds: [peer.endpoint] });
  const client = createClient(Health, createGrpcTransport({ baseUrl: node.rpcUrl }));
  const seen: Serving[] = [];
  for await (const { status } of client.watch({ service: "readiness" })) {
    seen.push(status);
    if (seen.includes(Serving.SERVING) && status === Serving.NOT_SERVING) {
      break;
    }
  }
  t.is((await ask(node.port, "/readyz")).status, 503);
});
