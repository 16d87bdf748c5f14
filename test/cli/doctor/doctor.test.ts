/** `gatehouse doctor`: findings and remedies. */
import test from "ava";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, open, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:tls";
import { type Issued, issueCertificate, localNames } from "../../helpers/process/certificates.js";
import { authorityDirectory, startMember, startTestNode, startTlsNode } from "../../helpers/nodes/start-node.js";
import { testKey, writeKey } from "../../helpers/chain/keys.js";
import { cliOutput, runCli } from "../../helpers/nodes/run-cli.js";
import { type Teardown, temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { until } from "../../helpers/nodes/until.js";

interface Check {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail" | "skip";
  readonly found: string;
  readonly remedy?: string;
}

/** Runs doctor. Returns its checks by name. Asserts that warnings and failures have a remedy, and failures code 1. */
async function examine(t: { is: (a: unknown, b: unknown, message?: string) => void }, ...args: string[]) {
  const { code, stdout, stderr } = await runCli(["doctor", ...args, "--json"]);
  t.is(stderr, "");
  const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: Check[] };
  const hasFailed = checks.some(({ status }) => status === "fail");
  t.is(code, hasFailed ? 1 : 0, stdout);
  t.is(ok, !hasFailed);
  for (const { name, status, remedy } of checks) {
    t.is(remedy !== undefined, status === "fail" || status === "warn", name);
  }
  return Object.fromEntries(checks.map((check) => [check.name, check]));
}

/** Flags of doctor for a node on this machine. */
const flagsOf = (dir: string, port: number): string[] => [
  ...["--data-dir", dir, "--rpc-port", String(port), "--omni-port", "0"],
  ...["--host", "127.0.0.1", "--allow-private-peers"],
];

test("doctor finds no problem in two connected nodes, and then each problem that is caused in one", async (t) => {
  const first = await startMember(t, { "allow-private-peers": true });
  const peers = join(await temporaryDirectory(t), "peers.json");
  await writeFile(peers, JSON.stringify([{ url: `https://127.0.0.1:${first.ports.omni!}` }]));
  const genesis = join(first.dir, "genesis.json");
  const second = await startTestNode(t, { genesis, peers, "allow-private-peers": true, "loop-interval": "0.1" });
  const own = flagsOf(second.dir, second.port);
  // Wait until both nodes know each other.
  await until(async () =>
    (await runCli(["doctor", ...own, "--json"])).stdout.includes("1 of 1 queried peers reach this node"),
  );
  const healthy = await examine(t, ...own);
  for (const name of [
    ...["directory", "disk", "key", "database", "owner", "lease", "genesis", "port rpc", "internal address"],
    ...["peers", "clock", "network"],
  ]) {
    t.is(healthy[name]?.status, "ok", JSON.stringify(healthy[name]));
  }
  t.regex(healthy.followers!.found, /every node that reaches the internal port may follow/);
  t.is((await examine(t, ...own, "--followers", "open")).followers!.status, "ok");
  t.is((await examine(t, ...own, "--followers", "listed")).followers!.status, "ok");
  t.regex(healthy.genesis!.found, /this node follows it/);
  t.regex(healthy.lease!.found, new RegExp(`The process ${process.pid} `));
  t.regex((await examine(t, ...flagsOf(first.dir, first.port))).genesis!.found, /this node produces its blocks/);

  // The text output fits the terminal.
  const text = await runCli(["doctor", ...own], { env: { COLUMNS: "60" } });
  t.is(text.code, 0);
  t.true(
    text.stdout.split("\n").every((line) => line.length <= 60),
    text.stdout,
  );

  const other = join(second.dir, "other.json");
  await writeFile(other, '{"name":"another"}');
  const atFirst = [...flagsOf(second.dir, first.port), "--node", first.rpcUrl];
  const check = async (args: readonly string[], name: string, status: Check["status"], found = /./): Promise<void> => {
    const { [name]: result } = await examine(t, ...args);
    t.is(result?.status, status, JSON.stringify(result));
    t.regex(result!.found, found);
  };
  await check(atFirst, "node", "fail", /^Another node responds at /);
  await check(atFirst, "port rpc", "warn", new RegExp(`is taken by the process ${process.pid} `));
  await check([...atFirst, "--port-drift", "deny"], "port rpc", "fail");
  await check([...own, "--public-url", "http://127.0.0.1:1"], "public address", "fail");
  await check([...own, "--public-url", first.rpcUrl], "public address", "fail");
  await check([...own, "--public-url", second.rpcUrl], "public address", "ok");
  await check([...own, "--omni-url", `https://127.0.0.1:${first.ports.omni!}`], "internal address", "fail");
  await check([...own, "--genesis", other], "genesis", "fail");
  await chmod(second.dir, 0o755);
  await check(own, "directory", "warn");
  await first.stop();
  await until(async () => (await examine(t, ...own)).peers?.status === "fail");
  await second.stop();
  const stopped = flagsOf(second.dir, 1);
  await check(stopped, "node", "warn");
  await check(stopped, "lease", "ok", /^No node is writing/);
  const key = join(second.dir, "identity.key");
  await chmod(key, 0o644);
  await check(own, "key", "fail", /can be read by others/);
  await rm(key);
  await writeKey(key, testKey(3));
  t.regex((await examine(t, ...own)).owner!.remedy!, /--recover/);

  const file = await open(second.databaseFile, "r+");
  await file.write(Buffer.alloc(2048, 0x5a), 0, 2048, 4096);
  await file.close();
  await check(own, "database", "fail");
});

test("doctor finds a node whose port has drifted, and its advice leads to that node", async (t) => {
  const other = await startMember(t);
  const node = await startTestNode(t, { "rpc-port": String(other.port), "port-drift": "allow" });
  t.not(node.port, other.port);
  const own = flagsOf(node.dir, other.port);
  const { node: running, "port rpc": port, peers } = await examine(t, ...own);
  t.true(running!.found.startsWith(`It responds at ${node.rpcUrl} and is dormant`), running!.found);
  t.true(running!.remedy!.startsWith(`Run gatehouse health --node ${node.rpcUrl}, which`), running!.remedy);
  t.true(port!.found.startsWith(`The node listens on ${node.port}, because ${other.port} was taken`), port!.found);
  t.is(peers!.remedy, `Add a peer: gatehouse peers add URL --data-dir ${node.dir}`);
  // The silent peer of the other node is offline.
  const atOther = await examine(t, ...flagsOf(other.dir, 1));
  t.true(atOther.peers!.remedy!.startsWith(`Run gatehouse peers book --data-dir ${other.dir}, which`));
  await other.stop();
  await node.stop();
  t.regex((await examine(t, ...own)).node!.found, /^No node responds at /);
});

test("doctor names the process that holds a port by whole words of its command", async (t) => {
  const word = "a".repeat(30);
  const script =
    'require("net").createServer().listen(0, "127.0.0.1", function () { console.log(this.address().port) })';
  const args = ["-e", script, "--", ...Array.from({ length: 9 }, () => `--${word}`)];
  const holder = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  t.teardown(() => holder.kill());
  const [line] = (await once(holder.stdout, "data")) as [Buffer];
  const dir = await temporaryDirectory(t);
  const { "port rpc": port } = await examine(t, ...flagsOf(dir, Number(line.toString())));
  t.regex(port!.found, new RegExp(`is taken by the process ${holder.pid!} \\(.*( --${word})* …\\)\\.$`));
  t.notRegex(port!.found, /-a{1,29} /);
});

test("doctor says of one of several authorities that it needs an external consensus", async (t) => {
  const dir = await authorityDirectory(t, testKey(1), testKey(2));
  const { port } = await startTestNode(t, { genesis: "genesis.json" }, dir);
  const { genesis } = await examine(t, ...flagsOf(dir, port));
  t.regex(
    genesis!.found,
    /this node is one of its 2 authorities, for which an external consensus process must produce/,
  );
});

test("doctor counts all peers of a list with several pages", async (t) => {
  const dir = await temporaryDirectory(t);
  const count = 9_000;
  const host = `${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}`;
  const urls = Array.from({ length: count }, (_, i) => ({ url: `https://${host}.${i}.invalid:9` }));
  await writeFile(join(dir, "peers.json"), JSON.stringify(urls));
  const { port } = await startTestNode(t, { peers: "peers.json", "loop-interval": "3600" }, dir);
  const own = flagsOf(dir, port);
  t.regex((await examine(t, ...own)).peers!.found, new RegExp(`^0 of ${count} are online`));
});

test("doctor warns with the reason if a node rejects its requests", async (t) => {
  const server = createHttpServer(({ url }, response) => {
    response.statusCode = url === "/publickey" ? 200 : 429;
    const error = { error: "Too many requests.", errorCode: "RATE_LIMITED" };
    response.end(JSON.stringify(url === "/publickey" ? testKey(1).publicKey : error));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  const node = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const dir = await temporaryDirectory(t);
  const { node: check } = await examine(t, ...flagsOf(dir, 1), "--node", node);
  t.like(check, { status: "warn" });
  t.regex(check!.found, /The node rejected the request: Too many requests\. \(RATE_LIMITED\)\.$/);
});

test("doctor warns of private programs on an open network, not on a listed one", async (t) => {
  const node = await startMember(t);
  const own = flagsOf(node.dir, node.port);
  t.like((await examine(t, ...own, "--followers", "open")).followers, { status: "ok" });
  const key = join(node.dir, "alice.key");
  await writeKey(key, testKey(2));
  await cliOutput(["storage", "create", "notes", "--node", node.rpcUrl, "--key", key, "--data", "{}"]);
  const { followers } = await examine(t, ...own, "--followers", "open");
  t.like(followers, { status: "warn" });
  t.regex(followers!.remedy!, /--followers listed/);
  t.like((await examine(t, ...own, "--followers", "listed")).followers, { status: "ok" });
});

test("doctor checks a missing directory, and one that init has created", async (t) => {
  const dir = join(await temporaryDirectory(t), "data");
  const missing = await examine(t, ...flagsOf(dir, 1));
  for (const name of ["directory", "disk", "key", "database", "genesis"]) {
    t.is(missing[name]?.status, "fail", name);
  }
  await cliOutput(["init", "--data-dir", dir]);
  const ready = await examine(t, ...flagsOf(dir, 1));
  for (const [name, status] of Object.entries({ directory: "ok", key: "ok", database: "skip", genesis: "ok" })) {
    t.is<string | undefined, string>(ready[name]?.status, status, name);
  }
});

test("doctor queries a node over TLS and checks its certificate", async (t) => {
  const { node, cert } = await startTlsNode(t);
  const key = cert.replace("cert.pem", "key.pem");
  const own = flagsOf(node.dir, node.port);
  const found = await examine(t, ...own, "--tls-cert", cert, "--tls-key", key, "--ca", cert);
  t.not(found.node?.status, "skip");
  t.regex(found.node!.found, /^It responds at https:/);
  // The certificate is valid for one day.
  t.like(found.certificate, { status: "warn" });
  t.regex(found.certificate!.found, /expires soon/);
  await writeFile(key, "none");
  t.like((await examine(t, ...own, "--tls-cert", cert, "--tls-key", key)).certificate, { status: "fail" });
});

/** Starts a proxy that terminates TLS with a certificate. Returns its port. */
async function startTlsProxy(t: Teardown, port: number, { cert, key }: Issued): Promise<number> {
  const server = createServer({ cert: await readFile(cert), key: await readFile(key) }, (socket) => {
    const upstream = connect(port, "127.0.0.1");
    upstream.on("error", () => socket.destroy());
    socket.on("error", () => upstream.destroy());
    socket.pipe(upstream).pipe(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

test("doctor checks the certificate of the public address as clients do, behind a proxy as well", async (t) => {
  const { rpcUrl, port, dir } = await startTestNode(t);
  const certificates = await temporaryDirectory(t);
  const root = await issueCertificate(certificates, "root", { isAuthority: true });
  const issue = (name: string, contents: Parameters<typeof issueCertificate>[2]) =>
    issueCertificate(certificates, name, { names: localNames, issuer: root, ...contents });
  const examineAt = (publicUrl: string, ...more: string[]) =>
    examine(t, ...flagsOf(dir, port), "--public-url", publicUrl, ...more);
  t.like((await examineAt(rpcUrl))["public certificate"], { status: "skip" });
  const good = `https://127.0.0.1:${await startTlsProxy(t, port, await issue("good", {}))}`;
  t.like((await examineAt(good, "--ca", root.cert))["public certificate"], { status: "ok" });

  for (const [certificate, found, remedy] of [
    [
      await issue("named", { names: "DNS:node.example.org" }),
      /is for DNS:node\.example\.org, and not for/,
      /=IP:127\./,
    ],
    [await issue("nameless", { names: undefined }), /has no subjectAltName: browsers and Go reject it/, /=IP:127\.0\./],
    [await issue("expired", { years: [2020, 2021] }), /has expired: it was valid until 2021/, /^Renew it where TLS/],
    [await issue("early", { years: [2080, 2090] }), /is not valid before 2080/, /^Renew it where TLS/],
  ] as const) {
    const url = `https://127.0.0.1:${await startTlsProxy(t, port, certificate)}`;
    const { "public certificate": check, "public address": address } = await examineAt(url, "--ca", root.cert);
    t.is(check!.status, "fail");
    t.true(check!.found.startsWith(`The certificate of ${url} `), check!.found);
    t.regex(check!.found, found);
    t.regex(check!.remedy!, remedy);
    // The address leads to the node all the same.
    t.is(address!.status, "ok");
  }

  const self = await issueCertificate(certificates, "self", { names: localNames });
  const selfSigned = `https://127.0.0.1:${await startTlsProxy(t, port, self)}`;
  for (const [url, found, remedy] of [
    [good, /is not trusted: the certificate of its issuer is missing/, /^Make the server send its intermediate /],
    [selfSigned, /is not trusted: it is self-signed/, /^If you know .* --ca FILE\. Clients must trust it as well\.$/],
  ] as const) {
    const { "public certificate": check } = await examineAt(url);
    t.is(check!.status, "fail");
    t.regex(check!.found, found);
    t.regex(check!.remedy!, remedy);
  }
  // The server does not speak TLS.
  t.like((await examineAt(rpcUrl.replace("http:", "https:")))["public certificate"], { status: "fail" });
});

test("doctor judges the certificate files of a node that does not run", async (t) => {
  const dir = await temporaryDirectory(t);
  const root = await issueCertificate(dir, "root", { isAuthority: true });
  const issued = await issueCertificate(dir, "issued", { names: "DNS:node.example.org", issuer: root });
  const nameless = await issueCertificate(dir, "nameless");
  const check = async ({ cert, key }: Issued, ...more: string[]) =>
    (await examine(t, ...flagsOf(dir, 1), "--tls-cert", cert, "--tls-key", key, ...more)).certificate!;
  const trusted = ["--ca", root.cert];
  t.like(await check(issued, ...trusted), { status: "ok" });
  t.like(await check(issued, ...trusted, "--public-url", "https://node.example.org:443"), { status: "ok" });
  const other = await check(issued, ...trusted, "--public-url", "https://other.example.org:443");
  t.is(other.status, "warn");
  t.regex(other.found, /is for DNS:node\.example\.org, and not for other\.example\.org\.$/);
  const untrusted = await check(issued);
  t.is(untrusted.status, "warn");
  t.regex(untrusted.found, /is not trusted: the certificate of its issuer is missing\.$/);
  const without = await check(nameless);
  t.is(without.status, "fail");
  t.regex(without.found, /has no subjectAltName/);
});
