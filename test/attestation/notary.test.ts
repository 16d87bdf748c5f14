/** The monitor of a notary whose response never ends. */
import test from "ava";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { watchNotary } from "../../src/attestation/notary.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Starts a notary that sends a byte every 20 ms, and starts to monitor it. */
async function monitorSlowNotary(t: Teardown) {
  let open = 0;
  const server = createServer((_, response) => {
    open++;
    response.writeHead(200, { "Content-Type": "application/json" });
    const timer = setInterval(() => response.write(" "), 20);
    response.on("close", () => {
      open--;
      clearInterval(timer);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const monitor = watchNotary(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, () => undefined);
  await until(() => open === 1);
  // Garbage collection must not remove the abort signal of the request, which Node.js references weakly.
  for (let i = 0; i < 5; i++) {
    await sleep(50);
    collectGarbage();
  }
  return { monitor, open: () => open };
}

test("aborts the response after 2 s", async (t) => {
  const { monitor, open } = await monitorSlowNotary(t);
  await until(() => open() === 0);
  t.false(monitor.state.isReachable);
  await monitor.stop();
});

test("stop does not wait for the response", async (t) => {
  const { monitor, open } = await monitorSlowNotary(t);
  const startedMs = Date.now();
  await monitor.stop();
  t.true(Date.now() - startedMs < 1_000, `${Date.now() - startedMs} ms`);
  await until(() => open() === 0);
});
