/** The public port over TLS: HTTPS and gRPC on one port, chosen by ALPN. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect as connectPlain } from "node:net";
import { join } from "node:path";
import { connect } from "node:tls";
import { InfoService } from "../../../gen/gatehouse/info/v1/info_pb.js";
import { makeCertificate, startTestNode, startTlsNode } from "../../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { connectGrpc } from "../../helpers/wire/grpc-client.js";
import { until } from "../../helpers/nodes/until.js";
import { bufCurl, run, toolProgram, whyNoBuf } from "../../helpers/process/programs.js";
import { testUnless } from "../../helpers/nodes/when.js";
import { version } from "../../../src/base/version.js";

test("serves curl over HTTP/1.1 and two gRPC clients over HTTP/2 on one TLS port", async (t) => {
  const { node, cert, ca } = await startTlsNode(t);
  t.is(node.rpcUrl, `https://127.0.0.1:${node.port}`);
  for (const [flag, first] of [
    ["--http1.1", /^HTTP\/1\.1 200 OK\r\n/],
    ["--http2", /^HTTP\/2 200 \r\n/],
  ] as const) {
    const curl = async (...args: string[]): Promise<string> =>
      (await run("curl", ["-sS", "--cacert", cert, flag, ...args])).stdout;
    const answer = await curl("-D", "-", `${node.rpcUrl}/connectionstring`);
    t.regex(answer, first);
    t.regex(answer, /access-control-allow-origin: \*/i);
    t.true(answer.endsWith(`"${node.rpcUrl}"`));
    t.is(await curl(`${node.rpcUrl}/`), '{"message":"Hello, World!","yourIP":"127.0.0.1"}');
    t.like(JSON.parse(await curl(`${node.rpcUrl}/nothing`)), { errorCode: "NOT_FOUND" });
    t.regex(await curl("-I", `${node.rpcUrl}/version`), first);
    const call = ["-d", '{"jsonrpc":"2.0","id":1,"method":"x"}', `${node.rpcUrl}/`];
    t.like(JSON.parse(await curl(...call)), { error: { code: -32601 } });
    const connect = ["-H", "Content-Type: application/json", "-d", "{}"];
    t.is(await curl(...connect, `${node.rpcUrl}/gatehouse.info.v1.InfoService/GetVersion`), '{"version":"0.2.0"}');
    const large = join(node.dir, "large");
    await writeFile(large, Buffer.alloc(3_000_000));
    // Over HTTP/1.1 the node closes the connection while the client still sends.
    if (flag === "--http2") {
      t.like(JSON.parse(await curl("--data-binary", `@${large}`, `${node.rpcUrl}/`)), {
        errorCode: "PAYLOAD_TOO_LARGE",
      });
    }
    // Many concurrent calls on one connection.
    const many = Array.from({ length: 50 }, () => `${node.rpcUrl}/version`);
    t.is(await curl("-Z", ...many), '"0.2.0"'.repeat(50));
  }

  const connected = createClient(InfoService, createGrpcTransport({ baseUrl: node.rpcUrl, nodeOptions: { ca } }));
  t.is((await connected.getVersion({})).version, "0.2.0");

  const client = connectGrpc(node.port, ca);
  t.teardown(() => client.close());
  t.is((await client.call(InfoService.method.getVersion)).version, "0.2.0");
});

testUnless(whyNoBuf)("buf curl calls over TLS, is told of a failure, and its stream ends with the node", async (t) => {
  const { node, cert } = await startTlsNode(t);
  const call = ["--protocol", "grpc", "--cacert", cert];
  const version = await bufCurl(...call, `${node.rpcUrl}/gatehouse.info.v1.InfoService/GetVersion`);
  t.is((JSON.parse(version) as { version: string }).version, "0.2.0");
  const failed = await t.throwsAsync(bufCurl(...call, `${node.rpcUrl}/gatehouse.chain.v1.ChainService/GetHead`));
  t.regex((failed as Error & { stderr: string }).stderr, /"unavailable"[^]*no genesis block yet/);
  const watcher = spawn(
    toolProgram("buf"),
    ["curl", ...call, `${node.rpcUrl}/gatehouse.health.v1.HealthService/WatchHealth`],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  t.teardown(() => watcher.kill("SIGKILL"));
  let watched = "";
  watcher.stdout.setEncoding("utf8").on("data", (chunk: string) => (watched += chunk));
  await until(() => watched.includes('"dormant": true'));
  const ended = once(watcher, "close");
  await node.stop();
  await ended;
});

test("selects the protocol by ALPN, and ignores cleartext and partial handshakes", async (t) => {
  const { node, ca } = await startTlsNode(t);
  for (const [offered, chosen] of [
    [["h2", "http/1.1"], "h2"],
    [["http/1.1"], "http/1.1"],
    [undefined, false],
  ] as const) {
    const socket = connect({ port: node.port, host: "127.0.0.1", ca, ...(offered && { ALPNProtocols: [...offered] }) });
    await new Promise((resolve) => socket.once("secureConnect", resolve));
    t.is(socket.alpnProtocol, chosen);
    socket.destroy();
  }
  let answered = "";
  for (const text of ["GET /version HTTP/1.1\r\nHost: a\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x16\x03\x01"]) {
    const socket = connectPlain(node.port, "127.0.0.1", () => socket.write(text));
    t.teardown(() => socket.destroy());
    socket.on("error", () => undefined).on("data", (bytes) => (answered += bytes.toString("latin1")));
    await once(socket, "connect");
  }
  // A later client is served, so the earlier ones would have been served too.
  for (let i = 0; i < 3; i++) {
    const { stdout } = await run("curl", ["-sSk", `${node.rpcUrl}/version`]);
    t.is(stdout, '"0.2.0"');
  }
  t.notRegex(answered, new RegExp(`${version}|HTTP`));
});

test("rejects invalid certificate and key files with one sentence", async (t) => {
  const dir = await temporaryDirectory(t);
  const { cert, key } = await makeCertificate(dir);
  const other = await makeCertificate(await temporaryDirectory(t));
  const bad = join(dir, "bad.pem");
  await writeFile(bad, "nonsense");
  for (const [flags, message] of [
    [{ "tls-cert": bad, "tls-key": key }, /are not a certificate and its key: /],
    [{ "tls-cert": cert, "tls-key": other.key }, /are not a certificate and its key: /],
    [{ "tls-cert": join(dir, "none.pem"), "tls-key": key }, /are not a certificate and its key: ENOENT/],
    [{ "tls-cert": cert }, /must be given together/],
  ] as const) {
    await t.throwsAsync(startTestNode(t, flags), { message });
  }
});
