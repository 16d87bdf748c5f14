/** Which addresses a peer may name. */
import test from "ava";
import { checkHost, parseConnectionString, parseEndpoint, resolveEndpoint } from "../../src/peers/endpoint.js";

const open = { tls: true, allowPrivate: true };
const strict = { tls: true, allowPrivate: false };

const reasonOf = (work: () => unknown): string => {
  try {
    work();
    return "";
  } catch (error) {
    return (error as Error).message;
  }
};

test("an endpoint has one form, however it is written", (t) => {
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

const malformed = [
  ...[
    "",
    "a:1",
    "https://",
    "https://a:0",
    "https://a:65536",
    "https://a:b",
    "https://a:1/x",
    "https://a:1?x",
    "https://a:1#x",
  ],
  ...[
    "https://u@a:1",
    "https://u:p@a:1",
    "ftp://a:1",
    "javascript:alert(1)",
    "file:///etc/passwd",
    "https://a b:1",
    "https://%:1",
  ],
  `https://${"a".repeat(300)}:1`,
];
for (const text of malformed) {
  test(`"${text.slice(0, 40)}" is no endpoint`, (t) => {
    t.regex(
      reasonOf(() => parseEndpoint(text, open)),
      /^The address ".*" is not of the form https:\/\/host:port\.$/s,
    );
  });
}

test("the scheme is that of the network", (t) => {
  t.regex(
    reasonOf(() => parseEndpoint("http://a:1", open)),
    /must begin with https:/,
  );
  t.regex(
    reasonOf(() => parseEndpoint("https://a:1", { tls: false })),
    /must begin with http:/,
  );
});

const never = [
  ...["0.0.0.0", "169.254.169.254", "169.254.1.1", "224.0.0.1", "255.255.255.255", "100.100.100.200", "168.63.129.16"],
  ...["[::]", "[fe80::1]", "[ff02::1]", "[fd00:ec2::254]", "[::ffff:169.254.169.254]"],
];
const privates = [
  ...["127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "198.18.0.1"],
  ...[
    "[::1]",
    "[fc00::1]",
    "[fd12::1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:10.0.0.1]",
    "localhost",
    "a.localhost",
  ],
];
const publics = ["8.8.8.8", "172.32.0.1", "100.128.0.1", "[2a00::1]", "node.example"];

test("metadata, link-local, multicast and unspecified addresses are for nobody", (t) => {
  for (const host of never) {
    for (const policy of [open, strict]) {
      t.regex(
        reasonOf(() => checkHost(`https://${host}:1`, policy)),
        /is an address that nodes never call/,
        host,
      );
    }
  }
});

test("loopback and private addresses need the operator's leave, public ones do not", (t) => {
  for (const host of privates) {
    t.regex(
      reasonOf(() => checkHost(`https://${host}:1`, strict)),
      /loopback or private address, which only/,
      host,
    );
    t.is(
      reasonOf(() => checkHost(`https://${host}:1`, open)),
      "",
      host,
    );
  }
  for (const host of publics) {
    t.is(
      reasonOf(() => checkHost(`https://${host}:1`, strict)),
      "",
      host,
    );
  }
});

test("a name is judged by the address that it leads to, and that address is what is called", async (t) => {
  t.deepEqual(await resolveEndpoint("https://127.0.0.1:5", open), { ip: "127.0.0.1", port: 5 });
  t.true(["127.0.0.1", "::1"].includes((await resolveEndpoint("https://localhost:5", open)).ip));
  await t.throwsAsync(resolveEndpoint("https://localhost:5", strict), { message: /loopback or private/ });
  await t.throwsAsync(resolveEndpoint("https://no-such-name.invalid:5", open), { message: /name that nobody knows/ });
});
