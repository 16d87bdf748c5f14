import test from "ava";
import { normalizeAddress } from "../../src/base/ip-address.js";
import { createAddressSet, findClientAddress } from "../../src/edge/client-address.js";

const trusted = createAddressSet(["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"]);

/** Rules, with the address of the socket, the headers and the address of the client. */
const cases: readonly (readonly [rule: string, remote: string, headers: Record<string, string>, client: string])[] = [
  ["a direct client", "203.0.113.9", {}, "203.0.113.9"],
  ["a mapped address", "::ffff:203.0.113.9", {}, "203.0.113.9"],
  ["a mapped address in upper case", "::FFFF:203.0.113.9", {}, "203.0.113.9"],
  ["an address with a zone", "fe80::1%eth0", {}, "fe80::1"],
  [
    "ignores forwarding headers of an untrusted socket",
    "203.0.113.9",
    { "x-forwarded-for": "1.1.1.1", forwarded: "for=1.1.1.1" },
    "203.0.113.9",
  ],
  ["one trusted proxy", "10.1.2.3", { "x-forwarded-for": "198.51.100.1" }, "198.51.100.1"],
  ["a mapped trusted proxy", "::ffff:10.1.2.3", { "x-forwarded-for": "198.51.100.1" }, "198.51.100.1"],
  [
    "reads a chain from the right, up to the first untrusted address",
    "10.1.2.3",
    { "x-forwarded-for": "1.1.1.1, 198.51.100.1, 10.9.9.9" },
    "198.51.100.1",
  ],
  ["only proxies: the leftmost", "10.1.2.3", { "x-forwarded-for": "10.0.0.1, 10.0.0.2" }, "10.0.0.1"],
  ["stops at a malformed entry", "10.1.2.3", { "x-forwarded-for": "1.1.1.1, unknown, 10.0.0.2" }, "10.0.0.2"],
  ["an empty header", "10.1.2.3", { "x-forwarded-for": "" }, "10.1.2.3"],
  ["ports and brackets", "10.1.2.3", { "x-forwarded-for": "198.51.100.1:4711" }, "198.51.100.1"],
  ["IPv6 with port", "10.1.2.3", { "x-forwarded-for": "[2001:db9::1]:4711" }, "2001:db9::1"],
  ["a mapped address in the header", "10.1.2.3", { "x-forwarded-for": "::ffff:198.51.100.1" }, "198.51.100.1"],
  [
    "Forwarded",
    "192.0.2.7",
    { forwarded: 'for=1.1.1.1;proto=http, for="[2001:db9::2]:80";by=10.0.0.1, For=10.0.0.3' },
    "2001:db9::2",
  ],
  ["Forwarded without for", "192.0.2.7", { forwarded: "proto=https" }, "192.0.2.7"],
  [
    "X-Forwarded-For wins over Forwarded, which a proxy may pass on",
    "192.0.2.7",
    { forwarded: "for=198.51.100.5", "x-forwarded-for": "198.51.100.6" },
    "198.51.100.6",
  ],
];

for (const [rule, remote, headers, client] of cases) {
  test(rule, (t) =>
    t.is(
      findClientAddress(remote, (name) => headers[name], trusted),
      client,
    ),
  );
}

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
