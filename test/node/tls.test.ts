/** A certificate that is renewed under a running node: by a new file, another link, and SIGHUP. */
import test from "ava";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { copyFile, mkdir, readFile, rename, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { connect as connectHttp2 } from "node:http2";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { readTlsFiles, type TlsFilesError, type TlsPaths } from "../../src/config/tls-files.js";
import { describeExpiry, followTlsFiles } from "../../src/node/serving/tls.js";
import { makeCertificate } from "../helpers/process/certificate.js";
import { ask } from "../helpers/wire/plain-client.js";
import { run } from "../helpers/chain/programs.js";
import { parseMetrics } from "../helpers/process/prometheus.js";
import { startNodeProcess } from "../helpers/nodes/start-cli.js";
import { startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless, whyNot } from "../helpers/nodes/when.js";

/** A certificate in a directory of its own, with its fingerprint. */
async function makeIn(dir: string, name: string, days = 1) {
  const own = join(dir, name);
  await mkdir(own);
  const paths = await makeCertificate(own, days);
  return { dir: own, ...paths, fingerprint: await fingerprintIn(paths.cert) };
}

/** When the certificate in a file ends, in seconds since the epoch. */
async function endOf(file: string): Promise<number> {
  return Date.parse(new X509Certificate(await readFile(file)).validTo) / 1000;
}

/** The same of the certificate that a node shows, as its metrics have it. */
async function endToldBy({ rpcUrl }: TestNode): Promise<number | undefined> {
  const { stdout } = await run("curl", ["-sSk", `${rpcUrl}/health`]);
  const { ports } = JSON.parse(stdout) as { ports: { metrics: { actual: number } } };
  const { text } = await ask(ports.metrics.actual, "/metrics");
  return parseMetrics(text).value("gatehouse_certificate_not_after_timestamp_seconds", { subsystem: "rpc" });
}

async function fingerprintIn(file: string): Promise<string> {
  return new X509Certificate(await readFile(file)).fingerprint256;
}

/** A connection as a client opens it that believes any certificate. */
async function open(t: Teardown, port: number, protocol = "http/1.1"): Promise<TLSSocket> {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: [protocol] });
  t.teardown(() => socket.destroy());
  socket.on("error", () => undefined);
  await once(socket, "secureConnect");
  return socket;
}

/** The fingerprint of what the port shows to a new connection. */
async function shown(t: Teardown, port: number): Promise<string> {
  const socket = await open(t, port);
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

/** A GET on an open connection of HTTP/1.1; gives the first bytes of the answer. */
async function askOn(socket: TLSSocket): Promise<string> {
  socket.write("GET /version HTTP/1.1\r\nHost: a\r\n\r\n");
  const [bytes] = (await once(socket, "data")) as [Buffer];
  return bytes.toString("latin1");
}

/** Puts a file in the place of another one at once, as tools do that renew certificates. */
async function replace(file: string, by: string): Promise<void> {
  await copyFile(by, `${file}.new`);
  await rename(`${file}.new`, file);
}

test("a certificate whose files are replaced is served to new connections, and open ones live on", async (t) => {
  const dir = await temporaryDirectory(t);
  const [first, second] = [await makeIn(dir, "first"), await makeIn(dir, "second", 30)];
  const flags = { "tls-cert": first.cert, "tls-key": first.key, "metrics-enabled": true, "metrics-port": "0" };
  const node = await startTestNode(t, flags, dir);
  t.is(await shown(t, node.port), first.fingerprint);
  t.is(await endToldBy(node), await endOf(first.cert));
  t.not(await endOf(first.cert), await endOf(second.cert));
  const http1 = await open(t, node.port);
  const http2 = connectHttp2(node.rpcUrl, { rejectUnauthorized: false });
  t.teardown(() => http2.destroy());
  const stream = http2.request({
    ...{ ":method": "POST", ":path": "/gatehouse.health.v1.HealthService/WatchHealth" },
    ...{ "content-type": "application/grpc", te: "trailers" },
  });
  stream.end(Buffer.alloc(5));
  let messages = 0;
  stream.on("data", () => messages++);
  await until(() => messages > 0);

  // One after the other: for a while the key is another certificate's.
  await replace(first.key, second.key);
  await replace(first.cert, second.cert);
  await until(async () => (await shown(t, node.port)) === second.fingerprint);
  const socket = await open(t, node.port, "h2");
  t.is(socket.alpnProtocol, "h2");
  t.is(socket.getPeerCertificate().fingerprint256, second.fingerprint);
  t.is(await endToldBy(node), await endOf(second.cert));
  const { validTo } = new X509Certificate(await readFile(second.cert));
  const told = `Serving a new certificate: CN=localhost, valid until ${new Date(validTo).toISOString()}`;
  t.true((await messagesOf(node.rpcUrl)).includes(told));

  t.regex(await askOn(http1), /^HTTP\/1\.1 200 OK\r\n/);
  const before = messages;
  node.subsystems.set("metrics", { status: SubsystemStatus.FAILED });
  await until(() => messages > before);
});

/** What the node's log says, as anybody may read it. */
async function messagesOf(url: string): Promise<string[]> {
  const { stdout } = await run("curl", ["-sSk", `${url}/diagnostics`]);
  return (JSON.parse(stdout) as { message: string }[]).map(({ message }) => message);
}

test("a link that leads elsewhere is followed, as Kubernetes changes what is in a secret", async (t) => {
  const dir = await temporaryDirectory(t);
  const mount = join(dir, "mount");
  await mkdir(mount);
  const [first, second] = [await makeIn(mount, "..first"), await makeIn(mount, "..second")];
  await symlink("..first", join(mount, "..data"));
  for (const name of ["cert.pem", "key.pem"]) {
    await symlink(join("..data", name), join(mount, name));
  }
  const flags = { "tls-cert": join(mount, "cert.pem"), "tls-key": join(mount, "key.pem") };
  const node = await startTestNode(t, flags, dir);
  t.is(await shown(t, node.port), first.fingerprint);
  await symlink("..second", join(mount, "..data_new"));
  await rename(join(mount, "..data_new"), join(mount, "..data"));
  await until(async () => (await shown(t, node.port)) === second.fingerprint);
  await rm(join(mount, "..first"), { recursive: true });
  t.is(await shown(t, node.port), second.fingerprint);
});

test("files that are no certificate and key leave the old one in place until they are", async (t) => {
  const dir = await temporaryDirectory(t);
  const [first, second] = [await makeIn(dir, "first"), await makeIn(dir, "second")];
  const node = await startTestNode(t, { "tls-cert": first.cert, "tls-key": first.key }, dir);
  t.regex(node.warnings.join("\n"), /The certificate of --tls-cert expires soon: it is valid until \d{4}-/);
  await unlink(first.cert);
  const says = (pattern: RegExp) => async () => pattern.test((await messagesOf(node.rpcUrl)).join("\n"));
  await until(says(/could not be reloaded.*: ENOENT: --tls-cert cannot be read/));
  await replace(first.cert, second.cert);
  await until(says(/could not be reloaded.*: --tls-key is not the key of the first certificate in --tls-cert/));
  t.is(await shown(t, node.port), first.fingerprint);
  await replace(first.key, second.key);
  await until(async () => (await shown(t, node.port)) === second.fingerprint);
  t.notRegex((await messagesOf(node.rpcUrl)).join("\n"), new RegExp(dir), "Nobody needs to know where the key is.");
});

testUnless(whyNot("bash", "--version"))(
  "a key that comes through a pipe cannot be read again, and is not",
  async (t) => {
    const dir = await temporaryDirectory(t);
    const { cert, key, fingerprint } = await makeIn(dir, "first");
    const flags = ["--tls-cert", cert, "--tls-key", "/dev/fd/9", "--log-level", "info"];
    const wrapper = ["bash", "-c", `exec "$0" "$@" 9< <(cat '${key}')`];
    const node = await startNodeProcess(t, join(dir, "data"), flags, wrapper);
    node.child.kill("SIGHUP");
    await until(() =>
      node.stderr().includes("--tls-cert and --tls-key are not regular files, so they cannot be reloaded"),
    );
    t.is(await shown(t, node.port), fingerprint);
    t.false(node.stderr().includes("could not be reloaded"));
  },
);

test("SIGHUP reads the files again at once, says what came of it, and ends nothing", async (t) => {
  const dir = await temporaryDirectory(t);
  const [first, second] = [await makeIn(dir, "first"), await makeIn(dir, "second")];
  const flags = ["--tls-cert", first.cert, "--tls-key", first.key, "--log-level", "info"];
  const node = await startNodeProcess(t, join(dir, "data"), flags);
  const count = (text: string): number => node.stderr().split(text).length - 1;
  const kept = await open(t, node.port);
  for (const times of [1, 2]) {
    node.child.kill("SIGHUP");
    await until(() => count("The certificate files are unchanged") === times);
  }
  await writeFile(first.key, "half a k");
  // What a look said by itself is not said again, but to the one who asks.
  await until(() => count("--tls-key holds no private key") === 1);
  node.child.kill("SIGHUP");
  await until(() => count("--tls-key holds no private key") === 2);
  t.is(await shown(t, node.port), first.fingerprint);
  t.true(count(`"file":"${first.key}"`) >= 2);
  await replace(first.key, second.key);
  await replace(first.cert, second.cert);
  node.child.kill("SIGHUP");
  await until(async () => (await shown(t, node.port)) === second.fingerprint);
  t.regex(await askOn(kept), /^HTTP\/1\.1 200 OK\r\n/);
  node.child.kill("SIGTERM");
  t.is(await node.ended, 0);
});

test("SIGHUP without a certificate says that there is nothing to read again, and ends nothing", async (t) => {
  const node = await startNodeProcess(t, await temporaryDirectory(t), ["--log-level", "info"]);
  node.child.kill("SIGHUP");
  await until(() => node.stderr().includes("There is no certificate to reload: no --tls-cert is given"));
  t.is((await ask(node.port, "/version")).status, 200);
  node.child.kill("SIGTERM");
  t.is(await node.ended, 0);
});

/** Follows files by hand, and keeps what is said; the clock stands at `nowMs`. */
async function follow(paths: TlsPaths, nowMs: () => number) {
  const said: string[] = [];
  const files: unknown[] = [];
  const taken: string[] = [];
  const info = (_fields: object, message: string): unknown => said.push(message);
  const warn = (fields: object, message: string): void => {
    said.push(message);
    files.push((fields as { file?: string }).file);
  };
  const followed = followTlsFiles({ paths, first: await readTlsFiles(paths), log: { info, warn }, nowMs });
  followed.onRenewed(({ cert }) => taken.push(new X509Certificate(cert).fingerprint256));
  return { ...followed, said, files, taken };
}

test("each thing that can be wrong is said once, with its file", async (t) => {
  const dir = await temporaryDirectory(t);
  const [first, second] = [await makeIn(dir, "first"), await makeIn(dir, "second")];
  const [good, other] = [await readFile(first.cert, "utf8"), await readFile(second.cert, "utf8")];
  const followed = await follow(first, Date.now);
  const { said, files, taken } = followed;
  for (const [cert, file, what] of [
    ["", first.cert, /--tls-cert holds no certificate/],
    [good.slice(0, 300), first.cert, /--tls-cert holds no certificate/],
    [`${good}${other.slice(0, 300)}`, first.cert, /--tls-cert cannot be used/],
    [other, first.key, /--tls-key is not the key of the first certificate/],
  ] as const) {
    await writeFile(first.cert, cert);
    await followed.check();
    await followed.check();
    t.regex(said.pop()!, what);
    t.is(files.pop(), file);
    await writeFile(first.cert, good);
    await followed.check();
    t.is(said.pop(), "The certificate files are unchanged");
    t.deepEqual([said, taken], [[], []], "It is said once.");
  }
  // A chain that has become longer is another one.
  await writeFile(first.cert, `${good}${other}`);
  await Promise.all([followed.check(), followed.check(), followed.check("requested")]);
  t.deepEqual(taken, [first.fingerprint]);
  t.is(followed.credentials()?.cert, `${good}${other}`);

  await writeFile(first.cert, good);
  const last = followed.check();
  followed.stop();
  await last;
  t.deepEqual(taken, [first.fingerprint], "It was stopped before.");
});

test("a certificate that nobody renews is told of when its end comes near, and when it has come", async (t) => {
  const dir = await temporaryDirectory(t);
  const { cert, key } = await makeIn(dir, "first");
  const certificate = new X509Certificate(await readFile(cert));
  const [fromMs, toMs] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  const daysMs = 86_400_000;
  t.is(describeExpiry(certificate, fromMs), describeExpiry(certificate, toMs), "It lives for a day.");
  t.regex(describeExpiry(certificate, fromMs - 1)!, /is not valid before/);

  const long = join(dir, "long.pem");
  await run("openssl", ["req", "-x509", "-key", key, "-days", "90", "-subj", "/CN=a", "-out", long]);
  const endMs = Date.parse(new X509Certificate(await readFile(long)).validTo);
  let nowMs = endMs - 15 * daysMs;
  const followed = await follow({ cert: long, key }, () => nowMs);
  const { said } = followed;
  await followed.check();
  t.deepEqual(said, []);
  nowMs = endMs - 13 * daysMs;
  await followed.check();
  await followed.check();
  nowMs = endMs + 1;
  await followed.check();
  const end = new Date(endMs).toISOString();
  t.deepEqual(said, [
    `The certificate of --tls-cert expires soon: it is valid until ${end}.`,
    `The certificate of --tls-cert has expired: it was valid until ${end}.`,
  ]);
});

test("what is wrong with files names the option, and the path apart", async (t) => {
  const dir = await temporaryDirectory(t);
  const { cert } = await makeIn(dir, "first");
  const error = await t.throwsAsync<TlsFilesError>(readTlsFiles({ cert, key: cert }));
  t.regex(error.message, /^--tls-key holds no private key \(/);
  t.is(error.file, cert);
  t.false(error.message.includes(dir));
});
