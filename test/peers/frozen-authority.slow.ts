/** Transactions that wait for an authority that is frozen for some seconds. */
import test from "ava";
import { TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { testKey } from "../helpers/chain/keys.js";
import { endpointOf, networkOf, peersOf, startMemberOf, startProcessOf } from "../helpers/nodes/network.js";
import { clientOf, statusOf, submit } from "../helpers/chain/relaying.js";
import type { TestNode } from "../helpers/nodes/start-node.js";
import { until } from "../helpers/nodes/until.js";

const authority = testKey(1);
const { genesis } = networkOf(authority);

test("what one node is given of a sender while the authority is frozen gets into blocks in its order", async (t) => {
  t.timeout(240_000);
  const maker = await startProcessOf(t, { key: authority, genesis });
  const nodes: TestNode[] = [];
  for (const key of [2, 3, 4].map(testKey)) {
    nodes.push(await startMemberOf(t, { key, genesis, seeds: [maker, ...nodes].map(endpointOf) }));
  }
  for (const node of nodes) {
    await until(async () => (await peersOf(node)).filter(({ status }) => status.ready).length === nodes.length);
  }
  const client = clientOf(t, nodes[0]!);
  const hashes: string[] = [];
  const submitFor = async (ms: number): Promise<void> => {
    const untilMs = performance.now() + ms;
    while (performance.now() < untilMs) {
      hashes.push(await submit(client, hashes.length + 1));
    }
  };
  // A call to it is given up after two seconds; what was in it then goes over others, and what comes next with it.
  for (let i = 0; i < 2; i++) {
    maker.child.kill("SIGSTOP");
    await submitFor(3_000).finally(() => maker.child.kill("SIGCONT"));
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
