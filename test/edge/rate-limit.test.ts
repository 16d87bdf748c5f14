import test from "ava";
import { createRateLimit } from "../../src/edge/rate-limit.js";
import { Failure } from "../../src/errors.js";

test("an address may send its limit, then is told how long to wait", (t) => {
  const limit = createRateLimit(60);
  for (let i = 0; i < 60; i++) {
    limit.count("192.0.2.1");
  }
  const error = t.throws(() => limit.count("192.0.2.1"), { instanceOf: Failure });
  t.is(error.reason, "RATE_LIMITED");
  t.is(error.retryAfterS, 1);
  t.notThrows(() => limit.count("192.0.2.2"), "another address is not concerned");
  t.deepEqual(limit.counts(), { totalIps: 2, blockedIps: 1 });
});

test("the wait grows with the scarcity", (t) => {
  const limit = createRateLimit(2);
  limit.count("a");
  limit.count("a");
  t.is(t.throws(() => limit.count("a"), { instanceOf: Failure }).retryAfterS, 30);
});

test("without a limit nothing is counted", (t) => {
  const limit = createRateLimit(0);
  for (let i = 0; i < 10_000; i++) {
    limit.count("192.0.2.1");
  }
  t.deepEqual(limit.counts(), { totalIps: 0, blockedIps: 0 });
});

test("addresses are forgotten before they fill the memory", (t) => {
  const limit = createRateLimit(5);
  for (let i = 0; i < 120_000; i++) {
    limit.count(`2001:db8:${(i >> 16).toString(16)}:${(i & 0xffff).toString(16)}::1`);
  }
  t.is(limit.counts().totalIps, 50_000);
});

test("a caller of IPv6 has a whole /64, and is counted as one", (t) => {
  const limit = createRateLimit(2);
  limit.count("2001:db8:0:1::1");
  limit.count("2001:0DB8::1:ffff:ffff:ffff:ffff");
  t.throws(() => limit.count("2001:db8:0:1:2:3:4.5.6.7"), { message: /^Too many requests/ });
  t.notThrows(() => limit.count("2001:db8:0:2::1"));
});

test("what is left is told in headers", (t) => {
  const limit = createRateLimit(60);
  t.deepEqual(limit.count("192.0.2.1"), ["RateLimit-Policy", '"default";q=60;w=60', "RateLimit", '"default";r=59;t=1']);
});
