/** One way of telling failures: a sentence and an exit code, JSON for machines, and never silence. */
import test from "ava";
import { once } from "node:events";
import { open, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { runCli, runCliProcess } from "../helpers/nodes/run-cli.js";
import { startMember } from "../helpers/nodes/start-member.js";
import { sampleGenesis } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";

/** Listens, and does one thing to whoever connects, once he has asked. */
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

const answer = (head: string, body = ""): string =>
  `HTTP/1.1 ${head}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

const misbehaviors: readonly (readonly [what: string, onRequest: (socket: Socket) => void, said: RegExp])[] = [
  ["closes", (socket) => socket.end(), /closed the connection before the response was complete/],
  ["resets", (socket) => socket.resetAndDestroy(), /closed the connection before the response was complete/],
  [
    "ends in its head",
    (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-"),
    /closed the connection|does not speak HTTP/,
  ],
  [
    "ends in its body",
    (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
    /closed the connection before the response was complete/,
  ],
  [
    "ends in a chunk",
    (socket) => socket.end("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"),
    /closed the connection before the response was complete/,
  ],
  [
    "speaks another protocol from then on",
    (socket) => socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: moon\r\n\r\n"),
    /closed the connection before the response was complete/,
  ],
  ["is no node", (socket) => socket.end(answer("502 Bad Gateway", "<html>")), /is not a node \(status 502\)/],
  ["is no HTTP", (socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n"), /does not speak HTTP/],
  [
    "sends elsewhere",
    (socket) => socket.end(answer("301 Moved\r\nLocation: https://other.example/health")),
    /redirects to https:\/\/other\.example\/health; give that address with --node/,
  ],
];

for (const [what, onRequest, said] of misbehaviors) {
  test(`where the other side ${what}, that is said, with code 3`, async (t) => {
    const url = await startListener(t, onRequest);
    // In a process of its own: one that has nothing left to wait for ends, which the shared one does not.
    const { code, stdout, stderr } = await runCliProcess(["health", "--node", url]);
    t.is(code, 3, stderr);
    t.is(stdout, "");
    t.regex(stderr, new RegExp(`^gatehouse: No node responds at ${url}: .*\\.\n$`));
    t.regex(stderr, said);
  });
}

test("an error in place of the health is the reason of the node, and other JSON is no node", async (t) => {
  const body = JSON.stringify({ error: "Too many requests.", errorCode: "RATE_LIMITED" });
  const limited = await startListener(t, (socket) => socket.end(answer("429 Too Many Requests", body)));
  const other = await startListener(t, (socket) => socket.end(answer("200 OK", "null")));
  for (const args of [["health"], ["health", "--json"]]) {
    const { code, stdout, stderr } = await runCli([...args, "--node", limited]);
    t.like({ code, stdout }, { code: 1, stdout: "" });
    t.regex(stderr, /The node rejected the request: Too many requests\. \(RATE_LIMITED\)/);
    const wrong = await runCli([...args, "--node", other]);
    t.like(wrong, { code: 3, stdout: "" });
    t.regex(wrong.stderr, /the server there is not a node \(status 200\)/);
  }
});

test("the message of a refused stream is whole, however its bytes are cut", async (t) => {
  const said = "Zurückgewiesen";
  const bytes = Buffer.from(answer("400 Bad Request", JSON.stringify({ error: said, errorCode: "INVALID_REQUEST" })));
  const inCharacter = bytes.indexOf(0xc3) + 1;
  const url = await startListener(t, (socket) => {
    socket.write(bytes.subarray(0, inCharacter));
    setTimeout(() => socket.end(bytes.subarray(inCharacter)), 100);
  });
  const { code, stderr } = await runCliProcess(["watch", "--node", url]);
  t.is(code, 1);
  t.is(stderr, `gatehouse: The node rejected the request: ${said} (INVALID_REQUEST)\n`);
});

test("a command that waits for what can never come says so, and ends with code 1", async (t) => {
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

test("with --json a failure is one object on stderr, with the node's reason where it told one", async (t) => {
  const { rpcUrl } = await startMember(t);
  const missing = `stor-${"0".repeat(40)}`;
  for (const [args, exitCode, errorCode, said] of [
    [
      ["storage", "get", missing, "--node", rpcUrl],
      1,
      "NOT_FOUND",
      /^The node rejected the request: There is no storage program/,
    ],
    [["tx", "status", "0x1", "--node", rpcUrl], 1, "INVALID_REQUEST", /^The node rejected the request: /],
    [["health", "--node", "http://127.0.0.1:1"], 3, "UNREACHABLE", /connection refused\.$/],
    [["peers", "book", "--data-dir", "/nowhere"], 3, "UNREACHABLE", /^No node responds at \/nowhere\/control\.sock/],
    [["health", "--moon"], 2, "WRONG_USAGE", /^Unknown option '--moon'.* See: gatehouse health --help$/],
    [
      ["storage", "create"],
      2,
      "WRONG_USAGE",
      /^Missing required argument 'NAME'\. See: gatehouse storage create --help$/,
    ],
    [["moon"], 2, "WRONG_USAGE", /^Unknown command 'moon'.* See: gatehouse --help$/],
    [["devnet", "--nodes", "0"], 2, "WRONG_USAGE", /whole number from 1 to 16/],
    [["start", "--rpc-port", "x"], 2, "WRONG_USAGE", /^--rpc-port must be/],
  ] as const) {
    const { code, stdout, stderr } = await runCli([...args, "--json"]);
    const failure = JSON.parse(stderr) as { error: string; errorCode: string; exitCode: number };
    t.is(code, exitCode, stderr);
    t.like(failure, { exitCode, errorCode });
    t.regex(failure.error, said);
    t.is(stdout, "");
    // For people the same sentence.
    t.is((await runCli(args)).stderr, `gatehouse: ${failure.error}\n`);
  }
  const { stderr } = await runCli(["start", "--rpc-port", "x"], { env: { GATEHOUSE_JSON: "true" } });
  t.like(JSON.parse(stderr), { exitCode: 2 });
});

test("a file that is missing or wrong is code 2, whichever it is", async (t) => {
  const dir = await temporaryDirectory(t);
  const [nowhere, wrong] = [join(dir, "nowhere"), join(dir, "wrong")];
  await writeFile(wrong, "no JSON {", { mode: 0o600 });
  const start = [
    "start",
    "--data-dir",
    join(dir, "data"),
    "--rpc-port",
    "0",
    "--omni-port",
    "0",
    "--log-level",
    "fatal",
  ];
  for (const path of [nowhere, wrong]) {
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
    ].filter(([command]) => path === nowhere || command !== "attest")) {
      const { code, stderr } = await runCli(args);
      t.is(code, 2, `${args.join(" ")}: ${stderr}`);
      t.true(stderr.startsWith("gatehouse: ") && stderr.includes(path), stderr);
    }
  }
});

test("start rejects a peers file whose URL does not match --omni-tls with code 2", async (t) => {
  const dir = await temporaryDirectory(t);
  const peers = join(dir, "peers.json");
  await writeFile(peers, '[{"url":"http://node.example:53551"}]');
  const ports = ["--rpc-port", "0", "--omni-port", "0", "--log-level", "fatal"];
  const { code, stderr } = await runCli(["start", "--data-dir", join(dir, "data"), "--peers", peers, ...ports]);
  t.is(code, 2, stderr);
  t.is(
    stderr,
    `gatehouse: The peers file ${peers} is invalid. The address "http://node.example:53551" must begin with https://, ` +
      "as nodes of this network use TLS.\n",
  );
});

test("report rejects numbers outside their ranges with code 2, and names the range", async (t) => {
  for (const [flag, value, range] of [
    ["--lease", "100000", "1 to 3600"],
    ["--lease", "0", "1 to 3600"],
    ["--port", "65536", "1 to 65535"],
    ["--requested-port", "x", "1 to 65535"],
  ] as const) {
    const { code, stderr } = await runCli(["report", "signaling", "ready", flag, value]);
    t.is(code, 2, stderr);
    t.true(stderr.includes(`It must be a whole number from ${range}.`), stderr);
  }
});

test("a file that is too large is refused by its size, before it is read", async (t) => {
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

test("an unknown variable is refused by every command; what Kubernetes puts there is not", async (t) => {
  const dir = await temporaryDirectory(t);
  const keygen = (name: string): string[] => ["keygen", "--out", join(dir, name)];
  const { code, stderr } = await runCli(keygen("a"), { env: { GATEHOUSE_NODES: "x" } });
  t.is(code, 2);
  t.is(
    stderr,
    "gatehouse: The environment has the variable GATEHOUSE_NODES, which is not an option; did you mean GATEHOUSE_NODE.\n",
  );
  // Of Services named gatehouse and gatehouse-rpc.
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
  // The options are read in their order, --rpc-port before --role.
  const start = ["start", "--data-dir", dir, "--role", "author"];
  t.regex((await runCli(start, { env: links })).stderr, /^gatehouse: --role must be/);
  t.regex((await runCli(start, { env: { GATEHOUSE_RPC_PORT: "x" } })).stderr, /^gatehouse: --rpc-port \(from/);
  t.is((await runCli(keygen("c"), { env: { ...links, GATEHOUSE_SERVICE: "x" } })).code, 2);
});
