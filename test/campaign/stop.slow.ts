/** The fault that stops a node: code 1 is a violation, unless the node's PostgreSQL server was down meanwhile. */
import test from "ava";
import { setTimeout as sleep } from "node:timers/promises";
import { stop } from "../../tools/campaign/faults/processes.js";
import type { CampaignServer } from "../../tools/campaign/nodes/databases.js";
import type { CampaignNode } from "../../tools/campaign/nodes/node.js";
import { createStage } from "../../tools/campaign/stage.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import type { Chance } from "../helpers/wire/hostile-values.js";

const serverDownMs = 3_000;

/** Restarts a stopped node at once. */
const atOnce: Chance = {
  below: () => 0,
  pick: ([first]) => first!,
  weigh: ([first]) => first![1],
  bytes: () => new Uint8Array(),
};

/** Returns a view of a node that reports exit codes through a function, which may change them. */
const withCode = (node: CampaignNode, report: (code: number | null) => number | null): CampaignNode =>
  Object.create(node, {
    end: { value: async (signal: "SIGTERM") => report(await node.end(signal)) },
  }) as CampaignNode;

async function restartLater(server: CampaignServer): Promise<void> {
  await sleep(serverDownMs);
  await server.start();
}

test("a stop with code 1 is a violation, unless the server of the node is down", async (t) => {
  t.timeout(120_000, "servers and nodes start and stop");
  const stage = await createStage(t, {
    ...{ directory: await temporaryDirectory(t), seed: 1, kinds: [], engine: "postgresql", minutes: 1 },
    ...{ rate: 1, restMs: 1, log: () => undefined },
  });
  const { nodes, databases } = stage.network;
  const node = nodes[2]!;
  await nodes[0]!.start();
  await node.start();
  const run = (view: CampaignNode): Promise<void> => stop.plan(atOnce, node.index).run(stage, view);

  const server = databases.serverOf(nodes[1]!.index)!;
  await server.crash("SIGKILL");
  const codes: (number | null)[] = [];
  await Promise.all([run(withCode(node, (code) => (codes.push(code), code))), restartLater(server)]);
  t.deepEqual(codes, [1]);
  t.deepEqual(stage.model.findings, []);
  t.true(node.isRunning);

  await run(withCode(node, (code) => (codes.push(code), 1)));
  t.is(codes[1], 0);
  t.deepEqual(
    stage.model.findings.map(({ column, sentence }) => [column, sentence]),
    [["crashed", "follower 2 ended with 1 when it was asked to stop."]],
  );
});
