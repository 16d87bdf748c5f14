/** Processing of requests that wait for a turn, or for a block, before their call runs. */
import test from "ava";
import express from "express";
import { connect } from "node:net";
import { createUnrestrictedGate } from "../../../src/edge/unrestricted-gate.js";
import { createMount } from "../../../src/rpc/exchange/mount.js";
import { jsonResponse } from "../../../src/rpc/exchange/responses.js";
import { serveExchange } from "../../../src/rpc/exchange/serve.js";
import type { Gate } from "../../../src/rpc/gate.js";
import { listenApp } from "../../helpers/nodes/express-app.js";
import { until } from "../../helpers/nodes/until.js";
import { ask } from "../../helpers/wire/plain-client.js";

test("runs no call whose client has left, or whose deadline has passed, while it waited", async (t) => {
  let begin!: () => void;
  const ready = new Promise<void>((resolve) => (begin = resolve));
  const admitAll = createUnrestrictedGate();
  const gate: Gate = { ...admitAll, admit: (...request) => ({ ...admitAll.admit(...request), ready }) };
  const deps = { gate, onInternalError: (error: unknown) => t.fail(String(error)), nextRequestId: () => "r-1" };
  const mount = createMount(deps);
  const started: string[] = [];
  let [arrived, closed] = [0, 0];
  const { port } = await listenApp(
    t,
    express().use((request, response) => {
      const exchange = mount.accept(request, response)!;
      arrived++;
      exchange.onClose(() => closed++);
      const respond = () => {
        started.push(exchange.path);
        return jsonResponse(exchange.requestId, 200, {});
      };
      serveExchange(exchange, { protocol: "connect", respond }, deps);
    }),
  );
  const leaving = connect(port, "127.0.0.1");
  leaving.write("GET /left HTTP/1.1\r\nHost: node\r\n\r\n");
  await until(() => arrived === 1);
  leaving.destroy();
  const late = await ask(port, "/late", { headers: { "Connect-Timeout-Ms": "50" } });
  t.is(late.status, 504, late.text);
  const waiting = ask(port, "/waiting");
  await until(() => arrived === 3 && closed === 2);
  begin();
  t.is((await waiting).status, 200);
  t.deepEqual(started, ["/waiting"]);
});
