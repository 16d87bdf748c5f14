import test from "ava";
import { createEdge } from "../../src/edge/edge.js";
import { defaultBytes } from "../../src/edge/byte-budget.js";
import type { Arrival, Permit } from "../../src/rpc/gate.js";
import { openSettings } from "../helpers/nodes/edge-server.js";
import { heapBytes } from "../helpers/process/heap.js";
import { until } from "../helpers/nodes/until.js";

test("limits memory for any number of addresses spoofed through a trusted proxy", (t) => {
  const edge = createEdge({
    ...openSettings,
    trustedProxies: ["10.0.0.0/8"],
    rateLimitPerMinute: 1,
  });
  t.teardown(() => edge.stop());
  const proxy = edge.connect("10.0.0.1", () => undefined)!;
  const arrive = (i: number): void => {
    const forwarded = `${(i >> 24) + 11}.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}, 10.1.1.1`;
    const arrival: Arrival = {
      requestId: "a",
      connection: proxy,
      header: (name) => (name === "x-forwarded-for" ? forwarded : undefined),
      onClose: (listener) => listener(),
      abort: () => undefined,
    };
    edge.admit(arrival, "http", undefined).recordOutcome();
  };
  // More addresses than are cached, so that each new one evicts another.
  for (let i = 0; i < 60_000; i++) {
    arrive(i);
  }
  t.is(edge.stats().totalIps, 50_000);
  const before = heapBytes();
  for (let i = 60_000; i < 260_000; i++) {
    arrive(i);
  }
  const grownMb = (heapBytes() - before) / 1e6;
  t.log(`${grownMb.toFixed(1)} MB more in use after 200,000 further addresses`);
  t.is(edge.stats().totalIps, 50_000);
  t.true(grownMb < 10);
});

test("never aborts a finished request, even if its response was empty", async (t) => {
  const bytes = { ...defaultBytes, graceMs: 1 };
  const edge = createEdge({ ...openSettings, bytes });
  t.teardown(() => edge.stop());
  const aborted: string[] = [];
  const admit = (name: string): Permit =>
    edge.admit(
      {
        requestId: name,
        connection: edge.connect("192.0.2.7", () => undefined)!,
        header: () => undefined,
        onClose: () => undefined,
        abort: () => aborted.push(name),
      },
      "http",
      undefined,
    );
  for (const [name, size] of [
    ["empty", 0],
    ["short", 10],
  ] as const) {
    const lease = admit(name);
    lease.reserveResponseBytes(size);
    lease.recordOutcome();
    lease.release();
  }
  // Neither read nor ended. The sweep that aborts it has checked the others too.
  admit("unread").reserveResponseBytes(10);
  await until(() => aborted.length > 0);
  t.deepEqual(aborted, ["unread"]);
});
