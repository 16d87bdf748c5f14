/** Errors of commands: one format with an exit code, as text or JSON. */
import test from "ava";
import { once } from "node:events";
import { open, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { testKey } from "../helpers/chain/keys.js";
import { testNetwork } from "../helpers/chain/transactions.js";
import { startWithUsers } from "../helpers/nodes/cli-users.js";
import { runCli, runCliProcess } from "../helpers/nodes/run-cli.js";
import { sampleGenesis, startTestNode, startTlsNode } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";

/** Starts a TCP server that calls `onRequest` for the first data of each connection. Returns its URL. */
async function startListener(t: Teardown, onRequest: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => onRequest(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const httpResponse = (head: string, body = ""): string =>
  `HTTP/1.1 ${head}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

const incomplete = /closed the connection before the response was complete/;
const misbehaviors: readonly (readonly [name: string, onRequest: (socket: Socket) => void, message: RegExp])[] = [
  ["closes the connection", (socket) => socket.end(), incomplete],
  ["resets the connection", (socket) => socket.resetAndDestroy(), incomplete],
  [
    "closes the connection within the head",
    (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-"),
    /closed the connection|does not speak HTTP/,
  ],
  [
    "closes the connection within the body",
    (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
    incomplete,
  ],
  [
    "closes the connection within a chunk",
    (socket) => socket.end("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"),
    incomplete,
  ],
  [
    "switches to another protocol",
    (socket) => socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: moon\r\n\r\n"),
    incomplete,
  ],
  ["is not a node", (socket) => socket.end(httpResponse("502 Bad Gateway", "<html>")), /is not a node \(status 502\)/],
  ["does not speak HTTP", (socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n"), /does not speak HTTP/],
  [
    "redirects",
    (socket) => socket.end(httpResponse("301 Moved\r\nLocation: https://other.example/health")),
    /redirects to https:\/\/other\.example\/health; give that address instead/,
  ],
];

for (const [name, onRequest, message] of misbehaviors) {
  test(`health ends with code 3 and the reason if the server ${name}`, async (t) => {
    const url = await startListener(t, onRequest);
    // Use a separate process: it would end if the event loop was empty, unlike the shared process.
    const { code, stdout, stderr } = await runCliProcess(["health", "--node", url]);
    t.is(code, 3, stderr);
    t.is(stdout, "");
    t.regex(stderr, new RegExp(`^gatehouse: No node responds at ${url}: .*\\.\n$`));
    t.regex(stderr, message);
  });
}

test("health reports an error response with code 1, and JSON without health with code 3", async (t) => {
  const body = JSON.stringify({ error: "Too many requests.", errorCode: "RATE_LIMITED" });
  const limited = await startListener(t, (socket) => socket.end(httpResponse("429 Too Many Requests", body)));
  const other = await startListener(t, (socket) => socket.end(httpResponse("200 OK", "null")));
  for (const args of [["health"], ["health", "--json"]]) {
    const { code, stdout, stderr } = await runCli([...args, "--node", limited]);
    t.like({ code, stdout }, { code: 1, stdout: "" });
    t.regex(stderr, /The node rejected the request: Too many requests\. \(RATE_LIMITED\)/);
    const unreachable = await runCli([...args, "--node", other]);
    t.like(unreachable, { code: 3, stdout: "" });
    t.regex(unreachable.stderr, /the server there is not a node \(status 200\)/);
  }
});

test("an error message survives a split within a character of its bytes", async (t) => {
  const message = "Zurückgewiesen";
  const bytes = Buffer.from(
    httpResponse("400 Bad Request", JSON.stringify({ error: message, errorCode: "INVALID_REQUEST" })),
  );
  const inCharacter = bytes.indexOf(0xc3) + 1;
  const url = await startListener(t, (socket) => {
    socket.write(bytes.subarray(0, inCharacter));
    setTimeout(() => socket.end(bytes.subarray(inCharacter)), 100);
  });
  const { code, stderr } = await runCliProcess(["watch", "--node", url]);
  t.is(code, 1);
  t.is(stderr, `gatehouse: The node rejected the request: ${message} (INVALID_REQUEST)\n`);
});

test("a command ends with code 1 and an error if the event loop is empty before it has finished", async (t) => {
  const dir = await temporaryDirectory(t);
  const stub = join(dir, "stub.mjs");
  await writeFile(
    stub,
    `import http from "node:http";
    import { EventEmitter } from "node:events";
    import { syncBuiltinESMExports } from "node:module";
    http.request = () => Object.assign(new EventEmitter(), { end() {} });
    syncBuiltinESMExports();`,
  );
  const { code, stderr } = await runCliProcess(["health"], { env: { NODE_OPTIONS: `--import ${stub}` } });
  t.is(code, 1);
  t.regex(stderr, /^gatehouse: The command ended before it was done/);
});

/** Values of capitalized words in the commands below. */
const words: Readonly<Record<string, string>> = {
  ABSENT: `stor-${"0".repeat(40)}`,
  NETWORK: testNetwork,
  OTHER: `0x${"1".repeat(64)}`,
  OWNER: testKey(2).publicKey,
  NOWHERE: "http://127.0.0.1:1",
  SPACE: " ",
};

/** Commands with the error code and the message. */
const failures: readonly (readonly [command: string, errorCode: string, message: RegExp])[] = [
  ["storage get ABSENT", "NOT_FOUND", /^The node rejected the request: There is no storage program/],
  ["tx status 0x1", "INVALID_REQUEST", /^The node rejected the request: /],
  ["search SPACE", "INVALID_REQUEST", /The query must not consist of spaces only\. \(INVALID_REQUEST\)$/],
  ["watch --address stor-1", "INVALID_REQUEST", /addresses must be stor- and 40 lower-case hex digits, not "stor-1"/],
  ["health --node NOWHERE", "UNREACHABLE", /^No node responds at http:\/\/127\.0\.0\.1:1: connection refused\.$/],
  ["peers --node NOWHERE", "UNREACHABLE", /connection refused\.$/],
  ["search 2 --node NOWHERE", "UNREACHABLE", /connection refused\.$/],
  ["watch --node NOWHERE", "UNREACHABLE", /connection refused\.$/],
  ["storage get ABSENT --verify NETWORK --node NOWHERE", "UNREACHABLE", /^No node responds at /],
  ["join NOWHERE --data-dir /nowhere --yes", "UNREACHABLE", /connection refused\.$/],
  [
    "peers book --data-dir /nowhere",
    "UNREACHABLE",
    /^No node responds at \/nowhere\/control\.sock: .*\. Start the node; if it runs on this machine, give its --data-dir\.$/,
  ],
  [
    "join 127.0.0.1:53550",
    "WRONG_USAGE",
    /^The address of the node must be a URL such as .*, not "127\.0\.0\.1:53550"\.$/,
  ],
  ["health --node nonsense", "WRONG_USAGE", /^--node must be a URL such as/],
  ["health --moon", "WRONG_USAGE", /^Unknown option '--moon'.* See: gatehouse health --help$/],
  ["storage create", "WRONG_USAGE", /^Missing required argument 'NAME'\. See: gatehouse storage create --help$/],
  ["moon", "WRONG_USAGE", /^Unknown command 'moon'.* See: gatehouse --help$/],
  ["start --rpc-port x", "WRONG_USAGE", /^--rpc-port must be/],
  ["doctor --rpc-port x", "WRONG_USAGE", /^--rpc-port must be/],
  ["devnet --nodes 0", "WRONG_USAGE", /whole number from 1 to 16/],
  ["report signaling ready --lease 100000", "WRONG_USAGE", /It must be a whole number from 1 to 3600\./],
  ["report signaling ready --lease 0", "WRONG_USAGE", /whole number from 1 to 3600\./],
  ["report signaling ready --port 65536", "WRONG_USAGE", /whole number from 1 to 65535\./],
  ["report signaling ready --requested-port x", "WRONG_USAGE", /whole number from 1 to 65535\./],
  ["light --port 65536", "WRONG_USAGE", /whole number from 0 to 65535\./],
  ["watch --count 1000000000", "WRONG_USAGE", /whole number from 0 to 999999999\./],
  ["attest verify file --max-age 10000000000", "WRONG_USAGE", /whole number from 0 to 999999999\./],
  ["attest verify file --max-age x", "WRONG_USAGE", /whole number from 0 to 999999999\./],
  ["storage create a", "WRONG_USAGE", /--key FILE is required to sign; create a key with: gatehouse keygen/],
  [
    "storage set ABSENT a text",
    "WRONG_USAGE",
    /^VALUE is not JSON at line 1, column 1: unexpected "t"; put a string in quotes: '"text"'\.$/,
  ],
  ["storage create a --data {a:1}", "WRONG_USAGE", /^--data is not JSON at line 1, column 2: unexpected "a"\.$/],
  ["storage create a --metadata {", "WRONG_USAGE", /^--metadata is not JSON at line 1, column 2: the text ends\.$/],
  ["storage set ABSENT a 1 --index -1", "WRONG_USAGE", /whole number from 0/],
  ["storage write ABSENT", "WRONG_USAGE", /One of --data, --file and --binary is required/],
  ["storage create a --data 1 --file x", "WRONG_USAGE", /--data and --file exclude each other/],
  ["storage create a --data 1 --binary x", "WRONG_USAGE", /--data and --binary exclude each other/],
  ["storage create a --allow 0x1", "WRONG_USAGE", /require --access/],
  ["storage create a --access restricted --group team", "WRONG_USAGE", /--group must be NAME:read,write:KEY,KEY/],
  ["storage create a --file /nowhere", "WRONG_USAGE", /The file \/nowhere cannot be read/],
  ["storage delete ABSENT --index 1", "WRONG_USAGE", /--index requires a FIELD/],
  ["storage search notes --verify NETWORK", "WRONG_USAGE", /A list cannot be proved/],
  ["storage history ABSENT --verify NETWORK", "WRONG_USAGE", /A list cannot be proved/],
  ["storage list OWNER --verify NETWORK", "WRONG_USAGE", /A list cannot be proved/],
  ["storage get ABSENT --save proof.json", "WRONG_USAGE", /--save requires --verify/],
  ["zk root --max-age 5", "WRONG_USAGE", /--max-age requires --verify/],
  ["storage get ABSENT --verify 0x1", "WRONG_USAGE", /--verify must be the hash of a genesis/],
  ["storage get ABSENT --genesis-hash 0x1", "WRONG_USAGE", /--verify must be the hash of a genesis/],
  ["storage get ABSENT --verify NETWORK --network OTHER", "WRONG_USAGE", /name different networks/],
  ["storage get ABSENT --verify NETWORK --node nonsense", "WRONG_USAGE", /--node must be a URL/],
  ["identity headers --network mainnet --key ALICE", "WRONG_USAGE", /64 lower-case hex digits, not "mainnet"/],
  ["verify none --genesis NETWORK", "WRONG_USAGE", /cannot be read/],
  ["verify none --genesis-hash NETWORK", "WRONG_USAGE", /cannot be read/],
];
const exitCodes: Readonly<Record<string, number>> = { WRONG_USAGE: 2, UNREACHABLE: 3 };

test("an error is one line on stderr or, with --json, one object with the reason of the node if there is one", async (t) => {
  const { dir, nobody } = await startWithUsers(t);
  for (const [command, errorCode, message] of failures) {
    const args = command.split(" ").map((word) => (word === "ALICE" ? join(dir, "alice.key") : (words[word] ?? word)));
    const { code, stdout, stderr } = await nobody(...args, "--json");
    const { error, ...rest } = JSON.parse(stderr) as { error: string; errorCode: string; exitCode: number };
    t.deepEqual(rest, { errorCode, exitCode: code! }, stderr);
    t.is(code, exitCodes[errorCode] ?? 1, stderr);
    t.regex(error, message);
    t.is(stdout, "");
    t.is((await nobody(...args)).stderr, `gatehouse: ${error}\n`);
  }
});

test("GATEHOUSE_JSON applies to start, and neither to results nor to errors of other commands", async (t) => {
  const env = { GATEHOUSE_JSON: "true", GATEHOUSE_DATA_DIR: await temporaryDirectory(t) };
  t.like(JSON.parse((await runCli(["start", "--rpc-port", "x"], { env })).stderr), { exitCode: 2 });
  t.regex(
    (await runCli(["health", "--node", "http://127.0.0.1:1"], { env })).stderr,
    /^gatehouse: No node responds at /,
  );
  t.regex((await runCli(["doctor"], { env })).stdout, /^directory +ok /);
  t.regex((await runCli(["init"], { env })).stdout, /^network +0x/);
});

test("an address with the wrong scheme or of the internal port is an error with advice", async (t) => {
  const plain = await startTestNode(t);
  const { node: secure } = await startTlsNode(t);
  const closes = (url: string): string =>
    `gatehouse: No node responds at ${url}: it closed the connection before the response was complete; if this port uses ` +
    "TLS, give https://; if it is the internal port, give the public one.\n";
  const [internalUrl, plainUrl] = [secure.ports.omni, secure.port].map((port) => `http://127.0.0.1:${port}`);
  const tlsUrl = plain.rpcUrl.replace("http:", "https:");
  for (const [url, message] of [
    [internalUrl!, closes(internalUrl!)],
    [plainUrl!, closes(plainUrl!)],
    [tlsUrl, `gatehouse: No node responds at ${tlsUrl}: it answers without TLS; give its address with http://.\n`],
  ] as const) {
    t.like(await runCli(["join", url, "--yes", "--data-dir", join(plain.dir, "new")]), { code: 3, stderr: message });
  }
});

const startQuietly = ["start", "--rpc-port", "0", "--omni-port", "0", "--log-level", "fatal"];

test("a missing or invalid file ends any command with code 2", async (t) => {
  const dir = await temporaryDirectory(t);
  const [missing, invalid] = [join(dir, "missing"), join(dir, "invalid")];
  await writeFile(invalid, "no JSON {", { mode: 0o600 });
  const start = [...startQuietly, "--data-dir", join(dir, "data")];
  for (const path of [missing, invalid]) {
    for (const args of [
      [...start, "--config", path],
      [...start, "--genesis", path],
      [...start, "--genesis", sampleGenesis, "--peers", path],
      [...start, "--tls-cert", path, "--tls-key", path],
      [...start, "--writers", "listed", "--writers-file", path],
      ["zk", "verify", path],
      ["attest", "verify", path],
      ["identity", "headers", "--key", path],
      ["storage", "create", "a", "--key", path],
    ].filter(([command]) => path === missing || command !== "attest")) {
      const { code, stderr } = await runCli(args);
      t.is(code, 2, `${args.join(" ")}: ${stderr}`);
      t.true(stderr.startsWith("gatehouse: ") && stderr.includes(path), stderr);
    }
  }
});

test("start rejects addresses and followers that do not match the use of TLS, with code 2", async (t) => {
  const dir = await temporaryDirectory(t);
  const peers = join(dir, "peers.json");
  await writeFile(peers, '[{"url":"http://node.example:53551"}]');
  for (const [flags, message] of [
    [
      ["--peers", peers],
      `The peers file ${peers} is invalid. The address "http://node.example:53551" must start with https://, as nodes ` +
        "of this network use TLS.\n",
    ],
    [["--omni-url", "https://node.example:0"], "--omni-url is invalid."],
    [["--followers", "listed", "--omni-tls", "off"], "--followers listed requires --omni-tls on"],
  ] as const) {
    const { code, stderr } = await runCliProcess([...startQuietly, "--data-dir", join(dir, "data"), ...flags]);
    t.is(code, 2, stderr);
    t.true(stderr.startsWith(`gatehouse: ${message}`), stderr);
  }
});

test("an input file over 1 MiB is rejected by its size, and a device once it exceeds the limit", async (t) => {
  const dir = await temporaryDirectory(t);
  const path = join(dir, "large.json");
  const file = await open(path, "w");
  await file.truncate(200 * 1024 * 1024);
  await file.close();
  const key = join(dir, "alice.key");
  t.is((await runCli(["keygen", "--out", key])).code, 0);
  for (const flag of ["--file", "--binary"]) {
    const { code, stderr } = await runCli(["storage", "create", "a", "--key", key, flag, path]);
    t.is(code, 2);
    t.is(stderr, `gatehouse: The file ${path} must not be larger than 1048576 bytes. It has 209715200.\n`);
  }
  t.regex((await runCli(["storage", "create", "a", "--key", key, "--file", "/dev/zero"])).stderr, /not be larger than/);
});

test("an input file of text is rejected if it is not UTF-8", async (t) => {
  const dir = await temporaryDirectory(t);
  const path = join(dir, "latin1.json");
  await writeFile(path, Buffer.from('{"caf\xe9":1}', "latin1"));
  const key = join(dir, "alice.key");
  t.is((await runCli(["keygen", "--out", key])).code, 0);
  for (const command of [
    ["storage", "create", "a", "--key", key, "--file", path],
    ["verify", path, "--genesis", `0x${"0".repeat(64)}`],
  ]) {
    const { code, stderr } = await runCli(command);
    t.is(code, 2);
    t.is(stderr, `gatehouse: The file ${path} is not UTF-8 text; convert it first.\n`);
  }
});

test("every command rejects unknown variables, but not the service links of Kubernetes", async (t) => {
  const dir = await temporaryDirectory(t);
  const keygen = (name: string): string[] => ["keygen", "--out", join(dir, name)];
  const { code, stderr } = await runCli(keygen("a"), { env: { GATEHOUSE_NODES: "x" } });
  t.is(code, 2);
  t.is(
    stderr,
    "gatehouse: The environment has the variable GATEHOUSE_NODES, which is not an option; did you mean GATEHOUSE_NODE.\n",
  );
  // Service links of Services named gatehouse and gatehouse-rpc.
  const links = Object.fromEntries(
    ["GATEHOUSE", "GATEHOUSE_RPC"].flatMap((service) => [
      [`${service}_SERVICE_HOST`, "10.0.0.1"],
      [`${service}_SERVICE_PORT`, "53550"],
      [`${service}_SERVICE_PORT_HTTP`, "53550"],
      [`${service}_PORT`, "tcp://10.0.0.1:53550"],
      [`${service}_PORT_53550_TCP`, "tcp://10.0.0.1:53550"],
      [`${service}_PORT_53550_TCP_PROTO`, "tcp"],
      [`${service}_PORT_53550_TCP_PORT`, "53550"],
      [`${service}_PORT_53550_TCP_ADDR`, "10.0.0.1"],
    ]),
  );
  t.is((await runCli(keygen("b"), { env: links })).code, 0);
  // Options are checked in their order: --rpc-port before --role.
  const start = ["start", "--data-dir", dir, "--role", "author"];
  t.regex((await runCli(start, { env: links })).stderr, /^gatehouse: --role must be/);
  t.regex((await runCli(start, { env: { GATEHOUSE_RPC_PORT: "x" } })).stderr, /^gatehouse: --rpc-port \(from/);
  t.is((await runCli(keygen("c"), { env: { ...links, GATEHOUSE_SERVICE: "x" } })).code, 2);
});
