/** Pending transactions while the authority is frozen for some seconds. */
import test from "ava";
import { TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { testKey } from "../helpers/chain/keys.js";
import { endpointOf, networkOf, startMemberOf, startProcessOf, untilReady } from "../helpers/nodes/network.js";
import { clientOf, statusOf, submit } from "../helpers/chain/submit.js";
import type { TestNode } from "../helpers/nodes/start-node.js";
import { until } from "../helpers/nodes/until.js";

const authority = testKey(1);
const { genesis } = networkOf(authority);

test("transactions of one sender are included in order after the authority was frozen", async (t) => {
  t.timeout(240_000);
  const producer = await startProcessOf(t, { key: authority, genesis });
  const nodes: TestNode[] = [];
  for (const key of [2, 3, 4].map(testKey)) {
    nodes.push(await startMemberOf(t, { key, genesis, seeds: [producer, ...nodes].map(endpointOf) }));
  }
  for (const node of nodes) {
    await untilReady(node, nodes.length);
  }
  const client = clientOf(t, nodes[0]!);
  const hashes: string[] = [];
  const submitFor = async (ms: number): Promise<void> => {
    const untilMs = performance.now() + ms;
    while (performance.now() < untilMs) {
      hashes.push(await submit(client, hashes.length + 1));
    }
  };
  // A relay call times out after 2 s. Its transactions then go through other nodes, as do the following ones.
  for (let i = 0; i < 2; i++) {
    producer.child.kill("SIGSTOP");
    await submitFor(3_000).finally(() => producer.child.kill("SIGCONT"));
    await submitFor(1_500);
  }
  const rejected: string[] = [];
  for (const hash of hashes) {
    await until(async () => (await statusOf(client, hash)).status !== TransactionStatus.PENDING);
    const { status, reason = "" } = await statusOf(client, hash);
    if (status !== TransactionStatus.INCLUDED) {
      rejected.push(reason);
    }
  }
  t.deepEqual(rejected, [], `of ${hashes.length}`);
  t.log(`${hashes.length} transactions`);
});
