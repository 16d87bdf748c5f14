/** Reloading of the TLS certificate while the node runs: after a new file, a new symlink target, and SIGHUP. */
import test from "ava";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { copyFile, mkdir, readFile, rename, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { connect as connectHttp2 } from "node:http2";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { readTlsFiles, type TlsPaths } from "../../src/config/tls-files.js";
import { describeExpiry, followTlsFiles } from "../../src/node/serving/tls.js";
import { makeCertificate, startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { ask } from "../helpers/wire/plain-client.js";
import { run } from "../helpers/process/programs.js";
import { parseMetrics } from "../helpers/process/prometheus.js";
import { startNodeProcess } from "../helpers/nodes/run-cli.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless, whyNot } from "../helpers/nodes/when.js";

/** Creates a certificate in its own directory, and returns the paths and the fingerprint. */
async function createCertificate(dir: string, name: string, days = 1) {
  const ownDir = join(dir, name);
  await mkdir(ownDir);
  const paths = await makeCertificate(ownDir, days);
  return { dir: ownDir, ...paths, fingerprint: await fingerprintIn(paths.cert) };
}

/** The expiry of the certificate in a file, in seconds since the epoch. */
async function expiryIn(file: string): Promise<number> {
  return Date.parse(new X509Certificate(await readFile(file)).validTo) / 1000;
}

/** The expiry of the certificate that a node serves, in seconds since the epoch, from its metrics. */
async function expiryFromMetrics({ rpcUrl }: TestNode): Promise<number | undefined> {
  const { stdout } = await run("curl", ["-sSk", `${rpcUrl}/health`]);
  const { ports } = JSON.parse(stdout) as { ports: { metrics: { actual: number } } };
  const { text } = await ask(ports.metrics.actual, "/metrics");
  return parseMetrics(text).value("gatehouse_certificate_not_after_timestamp_seconds", { subsystem: "rpc" });
}

async function fingerprintIn(file: string): Promise<string> {
  return new X509Certificate(await readFile(file)).fingerprint256;
}

/** Opens a connection that accepts any certificate. */
async function open(t: Teardown, port: number, protocol = "http/1.1"): Promise<TLSSocket> {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: [protocol] });
  t.teardown(() => socket.destroy());
  socket.on("error", () => undefined);
  await once(socket, "secureConnect");
  return socket;
}

/** The fingerprint of the certificate that a new connection receives. */
async function servedFingerprint(t: Teardown, port: number): Promise<string> {
  const socket = await open(t, port);
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

/** Sends a GET over an open HTTP/1.1 connection, and returns the first bytes of the response. */
async function getOver(socket: TLSSocket): Promise<string> {
  socket.write("GET /version HTTP/1.1\r\nHost: a\r\n\r\n");
  const [bytes] = (await once(socket, "data")) as [Buffer];
  return bytes.toString("latin1");
}

/** Replaces a file atomically, as tools that renew certificates do. */
async function replace(file: string, source: string): Promise<void> {
  await copyFile(source, `${file}.new`);
  await rename(`${file}.new`, file);
}

test("serves a replaced certificate to new connections, and keeps open connections", async (t) => {
  const dir = await temporaryDirectory(t);
  const [first, second] = [await createCertificate(dir, "first"), await createCertificate(dir, "second", 30)];
  const flags = { "tls-cert": first.cert, "tls-key": first.key, "metrics-enabled": true, "metrics-port": "0" };
  const node = await startTestNode(t, flags, dir);
  t.is(await servedFingerprint(t, node.port), first.fingerprint);
  t.is(await expiryFromMetrics(node), await expiryIn(first.cert));
  t.not(await expiryIn(first.cert), await expiryIn(second.cert));
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

  // For a moment, the key does not match the certificate.
  await replace(first.key, second.key);
  await replace(first.cert, second.cert);
  await until(async () => (await servedFingerprint(t, node.port)) === second.fingerprint);
  const socket = await open(t, node.port, "h2");
  t.is(socket.alpnProtocol, "h2");
  t.is(socket.getPeerCertificate().fingerprint256, second.fingerprint);
  t.is(await expiryFromMetrics(node), await expiryIn(second.cert));
  const { validTo } = new X509Certificate(await readFile(second.cert));
  const message = `Serving a new certificate: CN=localhost, valid until ${new Date(validTo).toISOString()}`;
  t.true((await messagesOf(node.rpcUrl)).includes(message));

  t.regex(await getOver(http1), /^HTTP\/1\.1 200 OK\r\n/);
  const before = messages;
  node.subsystems.set("metrics", { status: SubsystemStatus.FAILED });
  await until(() => messages > before);
});

/** The log messages that the node shows at /diagnostics. */
async function messagesOf(url: string): Promise<string[]> {
  const { stdout } = await run("curl", ["-sSk", `${url}/diagnostics`]);
  return (JSON.parse(stdout) as { message: string }[]).map(({ message }) => message);
}

test("follows a symlink to a new target, as Kubernetes updates a secret", async (t) => {
  const dir = await temporaryDirectory(t);
  const mount = join(dir, "mount");
  await mkdir(mount);
  const [first, second] = [await createCertificate(mount, "..first"), await createCertificate(mount, "..second")];
  await symlink("..first", join(mount, "..data"));
  for (const name of ["cert.pem", "key.pem"]) {
    await symlink(join("..data", name), join(mount, name));
  }
  const flags = { "tls-cert": join(mount, "cert.pem"), "tls-key": join(mount, "key.pem") };
  const node = await startTestNode(t, flags, dir);
  t.is(await servedFingerprint(t, node.port), first.fingerprint);
  await symlink("..second", join(mount, "..data_new"));
  await rename(join(mount, "..data_new"), join(mount, "..data"));
  await until(async () => (await servedFingerprint(t, node.port)) === second.fingerprint);
  await rm(join(mount, "..first"), { recursive: true });
  t.is(await servedFingerprint(t, node.port), second.fingerprint);
});

test("keeps the old certificate while the files are missing or do not match", async (t) => {
  const dir = await temporaryDirectory(t);
  const [first, second] = [await createCertificate(dir, "first"), await createCertificate(dir, "second")];
  const node = await startTestNode(t, { "tls-cert": first.cert, "tls-key": first.key }, dir);
  t.regex(node.warnings.join("\n"), /The certificate of --tls-cert expires soon: it is valid until \d{4}-/);
  await unlink(first.cert);
  const hasLogged = (pattern: RegExp) => async () => pattern.test((await messagesOf(node.rpcUrl)).join("\n"));
  await until(hasLogged(/could not be reloaded.*: ENOENT: --tls-cert cannot be read/));
  await replace(first.cert, second.cert);
  await until(hasLogged(/could not be reloaded.*: --tls-key is not the key of the first certificate in --tls-cert/));
  t.is(await servedFingerprint(t, node.port), first.fingerprint);
  await replace(first.key, second.key);
  await until(async () => (await servedFingerprint(t, node.port)) === second.fingerprint);
  t.notRegex(
    (await messagesOf(node.rpcUrl)).join("\n"),
    new RegExp(dir),
    "The public log does not contain the path of the key.",
  );
});

testUnless(whyNot("bash", "--version"))("does not reload a key that was read from a pipe", async (t) => {
  const dir = await temporaryDirectory(t);
  const { cert, key, fingerprint } = await createCertificate(dir, "first");
  const flags = ["--tls-cert", cert, "--tls-key", "/dev/fd/9", "--log-level", "info"];
  const wrapper = ["bash", "-c", `exec "$0" "$@" 9< <(cat '${key}')`];
  const node = await startNodeProcess(t, join(dir, "data"), flags, wrapper);
  node.child.kill("SIGHUP");
  await until(() =>
    node.stderr().includes("--tls-cert and --tls-key are not regular files, so they cannot be reloaded"),
  );
  t.is(await servedFingerprint(t, node.port), fingerprint);
  t.false(node.stderr().includes("could not be reloaded"));
});

test("SIGHUP reloads the files at once, logs the result, and stops nothing", async (t) => {
  const dir = await temporaryDirectory(t);
  const [first, second] = [await createCertificate(dir, "first"), await createCertificate(dir, "second")];
  const flags = ["--tls-cert", first.cert, "--tls-key", first.key, "--log-level", "info"];
  const node = await startNodeProcess(t, join(dir, "data"), flags);
  const count = (text: string): number => node.stderr().split(text).length - 1;
  const connection = await open(t, node.port);
  for (const times of [1, 2]) {
    node.child.kill("SIGHUP");
    await until(() => count("The certificate files are unchanged") === times);
  }
  await writeFile(first.key, "half a k");
  // The periodic check logs a problem once; SIGHUP logs it again.
  await until(() => count("--tls-key holds no private key") === 1);
  node.child.kill("SIGHUP");
  await until(() => count("--tls-key holds no private key") === 2);
  t.is(await servedFingerprint(t, node.port), first.fingerprint);
  t.true(count(`"file":"${first.key}"`) >= 2);
  await replace(first.key, second.key);
  await replace(first.cert, second.cert);
  node.child.kill("SIGHUP");
  await until(async () => (await servedFingerprint(t, node.port)) === second.fingerprint);
  t.regex(await getOver(connection), /^HTTP\/1\.1 200 OK\r\n/);
  node.child.kill("SIGTERM");
  t.is(await node.ended, 0);
});

test("SIGHUP without a certificate logs that there is nothing to reload, and stops nothing", async (t) => {
  const node = await startNodeProcess(t, await temporaryDirectory(t), ["--log-level", "info"]);
  node.child.kill("SIGHUP");
  await until(() => node.stderr().includes("There is no certificate to reload: no --tls-cert is given"));
  t.is((await ask(node.port, "/version")).status, 200);
  node.child.kill("SIGTERM");
  t.is(await node.ended, 0);
});

/** Starts a watcher that checks the files only on request. Records log messages, files and served fingerprints. */
async function follow(paths: TlsPaths, nowMs: () => number) {
  const messages: string[] = [];
  const files: unknown[] = [];
  const served: string[] = [];
  const info = (_fields: object, message: string): unknown => messages.push(message);
  const warn = (fields: object, message: string): void => {
    messages.push(message);
    files.push((fields as { file?: string }).file);
  };
  const watcher = followTlsFiles(paths, await readTlsFiles(paths), { info, warn }, nowMs);
  watcher.onRenewed(({ cert }) => served.push(new X509Certificate(cert).fingerprint256));
  return { ...watcher, messages, files, served };
}

test("logs each problem once, with its file", async (t) => {
  const dir = await temporaryDirectory(t);
  const [first, second] = [await createCertificate(dir, "first"), await createCertificate(dir, "second")];
  const [good, other] = [await readFile(first.cert, "utf8"), await readFile(second.cert, "utf8")];
  const watcher = await follow(first, Date.now);
  const { messages, files, served } = watcher;
  for (const [cert, file, message] of [
    ["", first.cert, /--tls-cert holds no certificate/],
    [good.slice(0, 300), first.cert, /--tls-cert holds no certificate/],
    [`${good}${other.slice(0, 300)}`, first.cert, /--tls-cert cannot be used/],
    [other, first.key, /--tls-key is not the key of the first certificate/],
  ] as const) {
    await writeFile(first.cert, cert);
    await watcher.check();
    await watcher.check();
    t.false(messages.at(-1)!.includes(dir), "only a separate property has the path");
    t.regex(messages.pop()!, message);
    t.is(files.pop(), file);
    await writeFile(first.cert, good);
    await watcher.check();
    t.is(messages.pop(), "The certificate files are unchanged");
    t.deepEqual([messages, served], [[], []], "The message is logged once.");
  }
  // A chain with another certificate at its end is a new one.
  await writeFile(first.cert, `${good}${other}`);
  await Promise.all([watcher.check(), watcher.check(), watcher.check("requested")]);
  t.deepEqual(served, [first.fingerprint]);
  t.is(watcher.credentials()?.cert, `${good}${other}`);

  await writeFile(first.cert, good);
  const last = watcher.check();
  watcher.stop();
  await last;
  t.deepEqual(served, [first.fingerprint], "The watcher was stopped before.");
});

test("/health shows a certificate that expires soon or cannot be reloaded, until it is replaced", async (t) => {
  const dir = await temporaryDirectory(t);
  const [first, second] = [await createCertificate(dir, "first"), await createCertificate(dir, "second", 90)];
  const node = await startTestNode(t, { "tls-cert": first.cert, "tls-key": first.key }, dir);
  const shows = async (reason: RegExp | undefined): Promise<void> =>
    await until(async () => {
      const { stdout } = await run("curl", ["-sSk", `${node.rpcUrl}/health`]);
      const { subsystems } = JSON.parse(stdout) as { subsystems: { rpc: { extra?: { reason?: string } } } };
      const shown = subsystems.rpc.extra?.reason;
      return reason === undefined ? shown === undefined : reason.test(shown ?? "");
    }, String(reason));
  await shows(/certificate of --tls-cert expires soon: it is valid until [^ ]+$/);
  await replace(first.cert, second.cert);
  await shows(/expires soon.*could not be reloaded.*--tls-key is not the key of the first certificate/);
  await replace(first.key, second.key);
  await shows(undefined);
  t.pass();
});

test("warns when the certificate expires soon, and again when it has expired", async (t) => {
  const dir = await temporaryDirectory(t);
  const { cert, key } = await createCertificate(dir, "first");
  const certificate = new X509Certificate(await readFile(cert));
  const [fromMs, toMs] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  const daysMs = 86_400_000;
  t.is(describeExpiry(certificate, fromMs), describeExpiry(certificate, toMs), "The certificate is valid for one day.");
  t.regex(describeExpiry(certificate, fromMs - 1)!, /is not valid before/);

  const long = join(dir, "long.pem");
  await run("openssl", ["req", "-x509", "-key", key, "-days", "90", "-subj", "/CN=a", "-out", long]);
  const endMs = Date.parse(new X509Certificate(await readFile(long)).validTo);
  let nowMs = endMs - 15 * daysMs;
  const watcher = await follow({ cert: long, key }, () => nowMs);
  const { messages } = watcher;
  await watcher.check();
  t.deepEqual(messages, []);
  nowMs = endMs - 13 * daysMs;
  await watcher.check();
  await watcher.check();
  nowMs = endMs + 1;
  await watcher.check();
  const end = new Date(endMs).toISOString();
  t.deepEqual(messages, [
    `The certificate of --tls-cert expires soon: it is valid until ${end}.`,
    `The certificate of --tls-cert has expired: it was valid until ${end}.`,
  ]);
});
