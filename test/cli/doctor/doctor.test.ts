/** `gatehouse doctor` finds what is wrong, and says what to do. */
import test from "ava";
import { once } from "node:events";
import { chmod, open, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:tls";
import { makeCertificate, startTlsNode } from "../../helpers/process/certificate.js";
import { testKey, writeKey } from "../../helpers/chain/keys.js";
import { runCli } from "../../helpers/nodes/run-cli.js";
import { startMember } from "../../helpers/nodes/start-member.js";
import { startTestNode } from "../../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { until } from "../../helpers/nodes/until.js";

interface Check {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail" | "skip";
  readonly found: string;
  readonly remedy?: string;
}

/** What it finds, by name. Whatever is to be looked at has a remedy, and whatever has failed makes it code 1. */
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

const local = ["--host", "127.0.0.1", "--allow-private-peers"];

test("two nodes that know each other are well; what is wrong with one is found", async (t) => {
  const first = await startMember(t, { "allow-private-peers": true });
  const peers = join(await temporaryDirectory(t), "peers.json");
  await writeFile(peers, JSON.stringify([{ url: `https://127.0.0.1:${first.ports.omni!}` }]));
  const flags = {
    genesis: join(first.dir, "genesis.json"),
    peers,
    "allow-private-peers": true,
    "loop-interval": "0.1",
  };
  const second = await startTestNode(t, flags);
  const at = (port: number): string[] => ["--rpc-port", String(port), "--omni-port", "0", ...local];
  const own = ["--data-dir", second.dir, ...at(second.port)];
  // Well once both have heard of each other.
  await until(async () =>
    (await runCli(["doctor", ...own, "--json"])).stdout.includes("1 of 1 queried peers reach this node"),
  );
  const well = await examine(t, ...own);
  for (const name of [
    "directory",
    "disk",
    "key",
    "database",
    "owner",
    "lease",
    "genesis",
    "port rpc",
    "internal address",
  ]) {
    t.is(well[name]?.status, "ok", JSON.stringify(well[name]));
  }
  for (const name of ["peers", "clock", "network"]) {
    t.is(well[name]?.status, "ok", JSON.stringify(well[name]));
  }
  t.regex(well.genesis!.found, /this node follows it/);
  t.regex(well.lease!.found, new RegExp(`The process ${process.pid} `));
  t.regex((await examine(t, "--data-dir", first.dir, ...at(first.port))).genesis!.found, /this node makes its blocks/);

  // For people, within their terminal.
  const people = await runCli(["doctor", ...own], { env: { COLUMNS: "60" } });
  t.is(people.code, 0);
  t.true(
    people.stdout.split("\n").every((line) => line.length <= 60),
    people.stdout,
  );

  const elsewhere = await examine(t, "--data-dir", second.dir, ...at(first.port));
  t.like(elsewhere.node, { status: "fail" });
  t.regex(elsewhere.node!.found, /^Another node responds at /);
  t.like(elsewhere["port rpc"], { status: "warn" });
  t.regex(elsewhere["port rpc"]!.found, new RegExp(`is taken by the process ${process.pid} `));
  t.like((await examine(t, "--data-dir", second.dir, ...at(first.port), "--port-drift", "deny"))["port rpc"], {
    status: "fail",
  });
  t.like((await examine(t, ...own, "--public-url", "http://127.0.0.1:1"))["public address"], { status: "fail" });
  t.like((await examine(t, ...own, "--public-url", first.rpcUrl))["public address"], { status: "fail" });
  t.like((await examine(t, ...own, "--public-url", second.rpcUrl))["public address"], { status: "ok" });
  t.like((await examine(t, ...own, "--omni-url", `https://127.0.0.1:${first.ports.omni!}`))["internal address"], {
    status: "fail",
  });

  const other = join(second.dir, "other.json");
  await writeFile(other, '{"name":"another"}');
  t.like((await examine(t, ...own, "--genesis", other)).genesis, { status: "fail" });

  await chmod(second.dir, 0o755);
  t.like((await examine(t, ...own)).directory, { status: "warn" });

  await first.stop();
  await until(async () => (await examine(t, ...own)).peers?.status === "fail");
  await second.stop();
  const stopped = await examine(t, ...own, "--rpc-port", "1");
  t.like(stopped.node, { status: "warn" });
  t.regex(stopped.lease!.found, /^No node is writing/);

  const key = join(second.dir, "identity.key");
  await chmod(key, 0o644);
  t.regex((await examine(t, ...own)).key!.found, /can be read by others/);
  await rm(key);
  await writeKey(key, testKey(3));
  const exchanged = await examine(t, ...own);
  t.like(exchanged.owner, { status: "fail" });
  t.regex(exchanged.owner!.remedy!, /--recover/);

  const file = await open(second.databaseFile, "r+");
  await file.write(Buffer.alloc(2048, 0x5a), 0, 2048, 4096);
  await file.close();
  t.like((await examine(t, ...own)).database, { status: "fail" });
});

test("all peers of a long list are counted", async (t) => {
  const dir = await temporaryDirectory(t);
  const count = 9_000;
  const host = `${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}`;
  const urls = Array.from({ length: count }, (_, i) => ({ url: `https://${host}.${i}.invalid:9` }));
  await writeFile(join(dir, "peers.json"), JSON.stringify(urls));
  const { port } = await startTestNode(t, { peers: "peers.json", "loop-interval": "3600" }, dir);
  const own = ["--data-dir", dir, "--rpc-port", String(port), "--omni-port", "0", ...local];
  t.regex((await examine(t, ...own)).peers!.found, new RegExp(`^0 of ${count} are online`));
});

test("a node that rejects the requests of the doctor is not reached, and its reason is told", async (t) => {
  const server = createHttpServer(({ url }, response) => {
    response.statusCode = url === "/publickey" ? 200 : 429;
    const error = { error: "Too many requests.", errorCode: "RATE_LIMITED" };
    response.end(JSON.stringify(url === "/publickey" ? testKey(1).publicKey : error));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  const node = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const dir = await temporaryDirectory(t);
  const { node: found } = await examine(t, "--data-dir", dir, "--rpc-port", "1", "--node", node, ...local);
  t.like(found, { status: "warn" });
  t.regex(found!.found, /The node rejected the request: Too many requests\. \(RATE_LIMITED\)\.$/);
});

test("private programs on an open network are found, and on a listed one they are in order", async (t) => {
  const node = await startMember(t);
  const own = ["--data-dir", node.dir, "--rpc-port", String(node.port), "--omni-port", "0", ...local];
  t.like((await examine(t, ...own)).followers, { status: "ok" });
  const key = join(node.dir, "alice.key");
  t.is((await runCli(["keygen", "--out", key])).code, 0);
  const created = await runCli(["storage", "create", "notes", "--node", node.rpcUrl, "--key", key, "--data", "{}"]);
  t.is(created.code, 0, created.stderr);
  const { followers } = await examine(t, ...own);
  t.like(followers, { status: "warn" });
  t.regex(followers!.remedy!, /--followers listed/);
  t.like((await examine(t, ...own, "--followers", "listed")).followers, { status: "ok" });
});

test("where there is nothing, or what was prepared and never started, that is said", async (t) => {
  const dir = join(await temporaryDirectory(t), "data");
  const nothing = await examine(t, "--data-dir", dir, "--rpc-port", "1", ...local);
  for (const name of ["directory", "disk", "key", "database", "genesis"]) {
    t.is(nothing[name]?.status, "fail", name);
  }
  t.is((await runCli(["init", "--data-dir", dir])).code, 0);
  const ready = await examine(t, "--data-dir", dir, "--rpc-port", "1", ...local);
  for (const [name, status] of Object.entries({
    directory: "ok",
    key: "ok",
    database: "skip",
    genesis: "ok",
  } as const)) {
    t.is(ready[name]?.status, status, name);
  }
  t.is((await runCli(["doctor", "--rpc-port", "x"])).code, 2);
});

test("a node that speaks TLS is asked, and its certificate looked at", async (t) => {
  const { node, cert } = await startTlsNode(t);
  const key = cert.replace("cert.pem", "key.pem");
  const own = ["--data-dir", node.dir, "--rpc-port", String(node.port), "--omni-port", "0", ...local];
  const found = await examine(t, ...own, "--tls-cert", cert, "--tls-key", key);
  t.not(found.node?.status, "skip");
  t.regex(found.node!.found, /^It responds at https:/);
  // It is made for a day.
  t.like(found.certificate, { status: "warn" });
  t.regex(found.certificate!.found, /expires soon/);
  await writeFile(key, "none");
  t.like((await examine(t, ...own, "--tls-cert", cert, "--tls-key", key)).certificate, { status: "fail" });
});

test("the certificate of the public address is looked at, whoever ends TLS there", async (t) => {
  const { rpcUrl, port, dir } = await startTestNode(t);
  const own = ["--data-dir", dir, "--rpc-port", String(port), "--omni-port", "0", ...local];
  const examineAt = async (publicUrl: string): Promise<Check> =>
    (await examine(t, ...own, "--public-url", publicUrl))["public certificate"]!;
  const startProxy = async (days: number): Promise<string> => {
    const { cert, key } = await makeCertificate(await temporaryDirectory(t), days);
    const server = createServer({ cert: await readFile(cert), key: await readFile(key) }, (socket) => {
      const upstream = connect(port, "127.0.0.1");
      upstream.on("error", () => socket.destroy());
      socket.on("error", () => upstream.destroy());
      socket.pipe(upstream).pipe(socket);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    t.teardown(() => server.close());
    return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  t.like(await examineAt(rpcUrl), { status: "skip" });
  t.like(await examineAt(await startProxy(30)), { status: "ok" });
  const ending = await startProxy(2);
  const found = await examineAt(ending);
  t.is(found.status, "warn");
  t.true(found.found.startsWith(`The certificate of ${ending} expires soon: it is valid until `), found.found);
  // It speaks, but no TLS.
  t.like(await examineAt(rpcUrl.replace("http:", "https:")), { status: "fail" });
});
