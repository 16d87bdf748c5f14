import test from "ava";
import { normalizeAddress } from "../../src/base/ip-address.js";
import { createAddressSet, findClientAddress } from "../../src/edge/client-address.js";

const trusted = createAddressSet(["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"]);

const resolves = test.macro({
  exec(t, remote: string, headers: Record<string, string>, expected: string) {
    t.is(
      findClientAddress(remote, (name) => headers[name], trusted),
      expected,
    );
  },
  title: (title, remote, headers, expected) => title ?? `${remote} ${JSON.stringify(headers)} → ${expected}`,
});

test(resolves, "203.0.113.9", {}, "203.0.113.9");
test(resolves, "::ffff:203.0.113.9", {}, "203.0.113.9");
test(resolves, "::FFFF:203.0.113.9", {}, "203.0.113.9");
test(resolves, "fe80::1%eth0", {}, "fe80::1");
test(
  "ignores forwarding headers of an untrusted socket",
  resolves,
  "203.0.113.9",
  { "x-forwarded-for": "1.1.1.1", forwarded: "for=1.1.1.1" },
  "203.0.113.9",
);
test("one trusted proxy", resolves, "10.1.2.3", { "x-forwarded-for": "198.51.100.1" }, "198.51.100.1");
test("a mapped trusted proxy", resolves, "::ffff:10.1.2.3", { "x-forwarded-for": "198.51.100.1" }, "198.51.100.1");
test(
  "reads a chain from the right, up to the first untrusted address",
  resolves,
  "10.1.2.3",
  { "x-forwarded-for": "1.1.1.1, 198.51.100.1, 10.9.9.9" },
  "198.51.100.1",
);
test("only proxies: the leftmost", resolves, "10.1.2.3", { "x-forwarded-for": "10.0.0.1, 10.0.0.2" }, "10.0.0.1");
test(
  "stops at a malformed entry",
  resolves,
  "10.1.2.3",
  { "x-forwarded-for": "1.1.1.1, unknown, 10.0.0.2" },
  "10.0.0.2",
);
test("an empty header", resolves, "10.1.2.3", { "x-forwarded-for": "" }, "10.1.2.3");
test("ports and brackets", resolves, "10.1.2.3", { "x-forwarded-for": "198.51.100.1:4711" }, "198.51.100.1");
test("IPv6 with port", resolves, "10.1.2.3", { "x-forwarded-for": "[2001:db9::1]:4711" }, "2001:db9::1");
test(
  "a mapped address in the header",
  resolves,
  "10.1.2.3",
  { "x-forwarded-for": "::ffff:198.51.100.1" },
  "198.51.100.1",
);
test(
  "Forwarded",
  resolves,
  "192.0.2.7",
  { forwarded: 'for=1.1.1.1;proto=http, for="[2001:db9::2]:80";by=10.0.0.1, For=10.0.0.3' },
  "2001:db9::2",
);
test("Forwarded without for", resolves, "192.0.2.7", { forwarded: "proto=https" }, "192.0.2.7");
test(
  "Forwarded wins over X-Forwarded-For",
  resolves,
  "192.0.2.7",
  { forwarded: "for=198.51.100.5", "x-forwarded-for": "198.51.100.6" },
  "198.51.100.5",
);

test("rejects invalid ranges, and names them", (t) => {
  for (const range of ["", "10.0.0.0/33", "10.0.0/8", "::/129", "localhost", "10.0.0.0/-1", "10.0.0.0/8/8x"]) {
    t.throws(() => createAddressSet([range]), { message: /is not an address range/ }, range);
  }
});

test("contains exactly the addresses of its ranges", (t) => {
  t.true(trusted("10.255.255.255"));
  t.false(trusted("11.0.0.0"));
  t.true(trusted("192.0.2.7"));
  t.false(trusted("192.0.2.8"));
  t.true(trusted("2001:db8:ffff::1"));
  t.false(trusted(""));
  t.false(trusted("nonsense"));
  t.false(createAddressSet([])("10.0.0.1"));
});

test("leaves an address unchanged that only looks IPv4-mapped", (t) => {
  t.is(normalizeAddress("::ffff:nonsense"), "::ffff:nonsense");
  t.is(normalizeAddress(""), "");
});
