/** Rules for the addresses that a peer may announce. */
import test from "ava";
import {
  checkHost,
  classifyAddress,
  parseConnectionString,
  parseEndpoint,
  resolveEndpoint,
} from "../../src/peers/address-book/endpoint.js";
import { CallError } from "../../src/rpc/channel.js";

const open = { tls: true, allowPrivate: true };
const strict = { tls: true, allowPrivate: false };

/** Returns the reason to reject an endpoint; empty if there is none. */
function reasonOf(check: (endpoint: string, policy: typeof open) => unknown, endpoint: string, policy = open): string {
  try {
    check(endpoint, policy);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

test("normalizes endpoints", (t) => {
  for (const [written, form] of [
    ["https://Node.Example:53551", "https://node.example:53551"],
    ["https://node.example:53551/", "https://node.example:53551"],
    ["https://node.example", "https://node.example:443"],
    ["https://127.1:1", "https://127.0.0.1:1"],
    ["https://0x7f000001:1", "https://127.0.0.1:1"],
    ["https://[2001:DB8::0:1]:1", "https://[2001:db8::1]:1"],
  ] as const) {
    t.is(parseEndpoint(written, open), form);
  }
  t.is(parseConnectionString("http://a"), "http://a:80");
});

test("rejects what is not an endpoint, and a scheme that does not match the TLS setting", (t) => {
  for (const text of [
    ...["", "a:1", "https://", "https://a:0", "https://a:65536", "https://a:b", "https://a:1/x", "https://a:1?x"],
    ...["https://a:1#x", "https://u@a:1", "https://u:p@a:1", "ftp://a:1", "javascript:alert(1)", "file:///etc/passwd"],
    ...["https://a b:1", "https://%:1", `https://${"a".repeat(300)}:1`],
  ]) {
    const reason = reasonOf(parseEndpoint, text);
    t.regex(reason, /^The address ".*" must have the form https:\/\/host:port\.$/s, text);
  }
  t.regex(reasonOf(parseEndpoint, "http://a:1"), /must start with https:/);
  t.regex(reasonOf(parseEndpoint, "https://a:1", { ...open, tls: false }), /must start with http:/);
});

const never = [
  // Unspecified, link-local, multicast, reserved.
  ...["0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.1.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"],
  ...["[::]", "[fe80::1]", "[febf::1]", "[ff02::1]", "[::ffff:169.254.169.254]", "[::ffff:0.0.0.1]"],
  // Cloud metadata services at other addresses.
  ...["100.100.100.200", "168.63.129.16", "[fd00:ec2::254]", "[fd20:ce::254]", "[fd00:c1::a9fe:a9fe]"],
  // Protocols, relays of 6to4, documentation, the discard prefix.
  ...["192.0.0.192", "192.88.99.1", "192.0.2.1", "198.51.100.1", "203.0.113.255"],
  ...["[2001:db8::1]", "[3fff:fff::1]", "[100::1]"],
  // Site-local, IPv4-compatible and translated addresses: obsolete, but still routed to IPv4 or within a site.
  ...["[fec0::1]", "[feff::1]", "[::127.0.0.1]", "[::10.0.0.1]", "[::8.8.8.8]", "[::2]"],
  ...["[::ffff:0:127.0.0.1]", "[::ffff:0:169.254.169.254]", "[::ffff:0:8.8.8.8]"],
  // Unassigned ranges.
  ...["[4000::1]", "[5f00::1]", "[1::1]", "[e000::1]", "[64:ff9c::1]", "[64:ff9b:2::1]"],
  // Embedded in NAT64, 6to4, Teredo (server, client) and ISATAP addresses.
  ...["[64:ff9b::a9fe:a9fe]", "[64:ff9b::169.254.169.254]", "[64:ff9b:1::169.254.169.254]"],
  ...["[64:ff9b:1:a9fe:a9:fe00::]", "[64:ff9b:1:a9:fe:a9fe::]", "[64:ff9b:1:7:a9:fea9:fe00:0]"],
  ...["[2002:a9fe:a9fe::1]", "[2002:e000:1::]", "[2001:0:a9fe:a9fe::]", "[2001:0:808:808::5601:5601]"],
  ...["[2a00::5efe:169.254.169.254]", "[2a00::200:5efe:a9fe:a9fe]"],
];
const privates = [
  ...["127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "198.18.0.1"],
  ...["[::1]", "[fc00::1]", "[fd12::1]", "[64:ff9b::7f00:1]", "[64:ff9b::8.8.8.8]", "[64:ff9b:1::10.0.0.1]"],
  ...["[2002:7f00:1::]", "[2002:808:808::1]", "[2001:0:808:808::f7f7:f7f7]", "[2001:2::1]", "[2001:10::1]"],
  ...["[2a00::5efe:10.0.0.1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:1]"],
  ...["[::ffff:10.0.0.1]", "localhost", "a.localhost"],
];
const publics = [
  ...["8.8.8.8", "172.32.0.1", "100.128.0.1", "192.0.1.1", "192.88.98.1", "198.51.99.1", "[::ffff:8.8.8.8]"],
  ...["[2a00::1]", "[2001:200::1]", "[2001:db7::1]", "[2a00::5eff:10.0.0.1]", "[2a00::5efe:8.8.8.8]", "node.example"],
];

const [neverReason, privateReason] = [
  /is an address that nodes never connect to/,
  /loopback or private address, which/,
];
for (const [title, hosts, strictly, openly] of [
  ["never allows metadata, link-local, multicast, unspecified and obsolete addresses", never, neverReason, neverReason],
  ["allows loopback and private addresses only with allowPrivate", privates, privateReason, /^$/],
  ["allows public addresses always", publics, /^$/, /^$/],
] as const) {
  test(title, (t) => {
    for (const host of hosts) {
      t.regex(reasonOf(checkHost, `https://${host}:1`, strict), strictly, host);
      t.regex(reasonOf(checkHost, `https://${host}:1`, open), openly, host);
    }
  });
}

test("checks the address that a name resolves to, and returns that address", async (t) => {
  t.deepEqual(await resolveEndpoint("https://127.0.0.1:5", open), { ip: "127.0.0.1", port: 5 });
  t.true(["127.0.0.1", "::1"].includes((await resolveEndpoint("https://localhost:5", open)).ip));
  await t.throwsAsync(resolveEndpoint("https://localhost:5", strict), { message: /loopback or private/ });
});

test("a name that cannot be resolved is a failed call, not a rejection by the peer", async (t) => {
  const error = await t.throwsAsync(resolveEndpoint("https://no-such-name.invalid:5", open), { instanceOf: CallError });
  t.regex(error.message, /cannot be resolved/);
  t.false(error.isResponse);
});

test("classifies resolved addresses in every notation", (t) => {
  for (const [address, reach] of [
    ["fe80::1%lo", "never"],
    ["::1%lo", "private"],
    ["::ffff:10.0.0.1", "private"],
    ["::ffff:0:10.0.0.1", "never"],
    ["2A00::1", "public"],
    ["8.8.4.4", "public"],
  ] as const) {
    t.is(classifyAddress(address), reach, address);
  }
});
