/** `--shutdown-delay`: the time between the signal and the shutdown of a node. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { Health, HealthCheckResponse_ServingStatus as Serving } from "../../../gen/health/v1/health_pb.js";
import { testKey } from "../../helpers/chain/keys.js";
import { writeAs } from "../../helpers/chain/submit.js";
import { createPublic } from "../../helpers/chain/transactions.js";
import { type RunningCli, startNodeProcess } from "../../helpers/nodes/run-cli.js";
import { authorityDirectory } from "../../helpers/nodes/start-node.js";
import type { Teardown } from "../../helpers/nodes/teardown.js";
import { until } from "../../helpers/nodes/until.js";
import { ask, askJson } from "../../helpers/wire/plain-client.js";

/** Starts a node that produces blocks, and waits until it is ready. */
async function startReady(t: Teardown, ...flags: readonly string[]): Promise<RunningCli> {
  const node = await startNodeProcess(t, await authorityDirectory(t, testKey(1)), flags);
  await untilReadiness(node, 200);
  return node;
}

const untilReadiness = ({ port }: RunningCli, status: number): Promise<void> =>
  until(async () => (await ask(port, "/readyz")).status === status, `readiness ${status}`);

for (const workers of ["1", "2"]) {
  test(`a node that waits is unready and serves all else; a second signal ends the wait; --workers ${workers}`, async (t) => {
    const node = await startReady(t, "--shutdown-delay", "3600", "--workers", workers);
    const { port, child } = node;
    const health = createClient(Health, createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` }));
    const controller = new AbortController();
    t.teardown(() => controller.abort());
    const watch = health.watch({ service: "readiness" }, { signal: controller.signal })[Symbol.asyncIterator]();
    t.is(((await watch.next()).value as { status: Serving }).status, Serving.SERVING);

    child.kill("SIGTERM");
    await untilReadiness(node, 503);
    t.is(((await watch.next()).value as { status: Serving }).status, Serving.NOT_SERVING);
    t.is((await health.check({ service: "readiness" })).status, Serving.NOT_SERVING);
    t.is((await health.check({ service: "" })).status, Serving.SERVING);
    const { checks } = await askJson<{ checks: { name: string }[] }>(port, "/readyz");
    t.deepEqual(
      checks.map(({ name }) => name),
      ["stopping"],
    );
    t.is((await ask(port, "/livez")).status, 200);
    t.true((await askJson<{ accepting: boolean }>(port, "/health")).accepting);
    await writeAs(testKey(1), port, 1, createPublic("late", "{}"));

    child.kill("SIGINT");
    t.is(await node.ended, 0);
  });
}

test("a node stops by itself after the delay", async (t) => {
  const node = await startReady(t, "--shutdown-delay", "0.2");
  node.child.kill("SIGTERM");
  t.is(await node.ended, 0);
});
