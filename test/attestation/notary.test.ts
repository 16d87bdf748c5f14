/** The watch over a notary that answers without end. */
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

/** Starts a notary that sends a byte now and then, and begins to watch it. */
async function watchDripping(t: Teardown) {
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
  const watched = watchNotary(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, () => undefined);
  await until(() => open === 1);
  // Node.js forgets the signals of a request whose answer comes.
  for (let i = 0; i < 5; i++) {
    await sleep(50);
    collectGarbage();
  }
  return { watched, open: () => open };
}

test("its answer is given up after two seconds", async (t) => {
  const { watched, open } = await watchDripping(t);
  await until(() => open() === 0);
  t.false(watched.state.isReachable);
  await watched.stop();
});

test("a stop does not wait for it", async (t) => {
  const { watched, open } = await watchDripping(t);
  const beganMs = Date.now();
  await watched.stop();
  t.true(Date.now() - beganMs < 1_000, `${Date.now() - beganMs} ms`);
  await until(() => open() === 0);
});
