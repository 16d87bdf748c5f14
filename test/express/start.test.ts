/** Node in the process of an application, started by the package export `gatehouse/express`. */
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import express from "express";
import { createGatehouse } from "gatehouse-client";
import { ConfigError, startGatehouse, StartError } from "gatehouse/express";
import { join } from "node:path";
import { version } from "../../src/base/version.js";
import { listenApp } from "../helpers/nodes/express-app.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { sampleGenesis } from "../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";

const ports = { host: "127.0.0.1", "rpc-port": 0, "omni-port": 0, "log-level": "silent" } as const;

test("uses only the passed settings, not the environment, and ends with stop()", async (t) => {
  process.env["GATEHOUSE_HOST"] = "not a host";
  t.teardown(() => delete process.env["GATEHOUSE_HOST"]);
  const gatehouse = await startGatehouse({
    ...ports,
    "data-dir": await temporaryDirectory(t),
    genesis: sampleGenesis,
    "rate-limit-exempt": [],
  });
  t.teardown(() => gatehouse.stop());
  const { router, rpcUrl, publicKey, warnings } = gatehouse;
  t.is(rpcUrl, `http://127.0.0.1:${gatehouse.ports["rpc"]}`);
  t.regex(publicKey, /^0x[0-9a-f]{64}$/);
  t.deepEqual(warnings, []);

  const { port, url } = await listenApp(t, express().use("/node", router));
  // Probes, which are never rejected, even on a busy machine.
  t.is((await ask(port, "/node/livez")).text, (await ask(gatehouse.ports["rpc"]!, "/livez")).text);
  t.is(await askJson(port, "/node/version"), version as never);
  await t.notThrowsAsync(createGatehouse(`${url}/node`).health.getLiveness({}));
  // gRPC needs HTTP/2, so it is only on the node's own port.
  await t.notThrowsAsync(
    createGatehouse(rpcUrl, { transport: createGrpcTransport({ baseUrl: rpcUrl }) }).health.getLiveness({}),
  );

  const listeners = process.listenerCount("uncaughtExceptionMonitor");
  await Promise.all([gatehouse.stop(), gatehouse.stop()]);
  t.is(process.listenerCount("uncaughtExceptionMonitor"), listeners - 1);
  t.is((await ask(port, "/node/livez")).status, 503);
  await t.throwsAsync(ask(gatehouse.ports["rpc"]!, "/livez"), { code: "ECONNREFUSED" });
});

test("rejects invalid settings and a failed start with one sentence", async (t) => {
  await t.throwsAsync(startGatehouse({ "rpc-port": 70_000 }), { instanceOf: ConfigError, message: /^--rpc-port / });
  const dir = await temporaryDirectory(t);
  const genesis = join(dir, "missing.json");
  const listeners = process.listenerCount("uncaughtExceptionMonitor");
  await t.throwsAsync(startGatehouse({ ...ports, "data-dir": dir, genesis }), { instanceOf: StartError });
  t.is(process.listenerCount("uncaughtExceptionMonitor"), listeners);
});
