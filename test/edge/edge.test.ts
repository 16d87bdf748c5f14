import test from "ava";
import { createEdge } from "../../src/edge/edge.js";
import type { Arrival } from "../../src/rpc/gate.js";

test("a million addresses, spoofed through a trusted proxy, leave memory bounded", (t) => {
  const edge = createEdge({
    trustedProxies: ["10.0.0.0/8"],
    identityMode: "signed",
    rateLimitPerMinute: 1,
    rateLimitExempt: [],
    onAccess: () => undefined,
    onUntrustedForwarding: () => undefined,
  });
  t.teardown(() => edge.stop());
  const arrive = (i: number): void => {
    const forwarded = `${(i >> 24) + 11}.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}, 10.1.1.1`;
    const arrival: Arrival = {
      requestId: "a",
      protocol: "http",
      remoteAddress: "10.0.0.1",
      header: (name) => (name === "x-forwarded-for" ? forwarded : undefined),
      method: undefined,
    };
    edge.settle(edge.admit(arrival));
  };
  const heapMb = (): number => process.memoryUsage().heapUsed / 1024 ** 2;
  for (let i = 0; i < 100_000; i++) {
    arrive(i);
  }
  const before = heapMb();
  for (let i = 0; i < 1_000_000; i++) {
    arrive(i);
  }
  t.log(`heap ${Math.round(before)} MiB after 100,000 addresses, ${Math.round(heapMb())} MiB after a million`);
  t.is(edge.stats().totalIps, 50_000);
  t.true(heapMb() < before + 150);
});
