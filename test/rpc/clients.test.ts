/** Third-party clients of every protocol on the same port. */
import test from "ava";
import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { HealthService, HealthStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { connectGrpc } from "../helpers/wire/grpc-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { sampleGenesis, startTestNode, startTlsNode } from "../helpers/nodes/start-node.js";
import { bufCurl, run, whyNoBuf } from "../helpers/process/programs.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { testUnless, whyNot } from "../helpers/nodes/when.js";
import { version } from "../../src/base/version.js";

test("curl", async (t) => {
  const { port, rpcUrl } = await startTestNode(t, { genesis: sampleGenesis });
  const { stdout } = await run("curl", [
    "-sS",
    "-w",
    "\n%{http_code} %{http_version} %{content_type}",
    `${rpcUrl}/version`,
  ]);
  t.is(stdout, '"0.2.0"\n200 1.1 application/json; charset=utf-8');
  const { stdout: missing } = await run("curl", ["-sS", `http://localhost:${port}/nope`]);
  t.is((JSON.parse(missing) as { errorCode: string }).errorCode, "NOT_FOUND");
});

const testBuf = testUnless(whyNoBuf);

// buf curl uses Connect by default.
for (const [protocol, ...flags] of [
  ["Connect, its default"],
  ["Connect", "--protocol", "connect"],
  ["gRPC", "--protocol", "grpc"],
  ["gRPC-Web", "--protocol", "grpcweb"],
] as const) {
  const call = async (...more: string[]) => {
    const stdout = await bufCurl(...flags, ...more);
    return (JSON.parse(stdout) as { snapshot: { status: string; dormant: boolean } }).snapshot;
  };
  const dormant = { status: "HEALTH_STATUS_DORMANT", dormant: true };
  const path = "/gatehouse.health.v1.HealthService/GetHealth";

  testBuf(`buf curl, ${protocol}, over HTTP/2 without TLS, with a schema and by reflection`, async (t) => {
    const { rpcUrl } = await startTestNode(t, { genesis: sampleGenesis });
    t.like(await call("--schema", ".", "--http2-prior-knowledge", `${rpcUrl}${path}`), dormant);
    t.like(await call("--http2-prior-knowledge", `${rpcUrl}${path}`), dormant);
  });

  testBuf(`buf curl, ${protocol}, over TLS, with a schema and by reflection`, async (t) => {
    const { node, cert } = await startTlsNode(t, { genesis: sampleGenesis });
    t.like(await call("--schema", ".", "--cacert", cert, `${node.rpcUrl}${path}`), dormant);
    t.like(await call("--cacert", cert, `${node.rpcUrl}${path}`), dormant);
  });

  if (protocol !== "gRPC") {
    testBuf(`buf curl, ${protocol}, over HTTP/1.1`, async (t) => {
      const { rpcUrl } = await startTestNode(t, { genesis: sampleGenesis });
      t.like(await call("--schema", ".", `${rpcUrl}${path}`), dormant);
    });
  }
}

const curlVersion = whyNot("curl", "--version") ?? spawnSync("curl", ["--version"], { encoding: "utf8" }).stdout;
const testCurlHttp2 = testUnless(/^Features:.*\bHTTP2\b/m.test(curlVersion) ? undefined : "curl has no HTTP/2");

testCurlHttp2("curl, by HTTP/2 prior knowledge: plain, Connect, gRPC-Web", async (t) => {
  const { rpcUrl } = await startTestNode(t, { genesis: sampleGenesis });
  const curl = async (...args: string[]) => {
    const shown = ["-w", "\n%{http_code} %{http_version} %{content_type}"];
    return (await run("curl", ["-sS", "--http2-prior-knowledge", ...shown, ...args])).stdout;
  };
  const rpc = `${rpcUrl}/gatehouse.info.v1.InfoService/GetVersion`;
  const post = (type: string, body: string): string[] => ["-H", `Content-Type: ${type}`, "-d", body, rpc];
  t.is(await curl(`${rpcUrl}/version`), '"0.2.0"\n200 2 application/json; charset=utf-8');
  t.regex(await curl(`${rpcUrl}/nope`), /"errorCode":"NOT_FOUND"\}\n404 2 application\/json/);
  t.is(await curl(...post("application/json", "{}")), '{"version":"0.2.0"}\n200 2 application/json');
  const text = await curl(...post("application/grpc-web-text", "AAAAAAA="));
  t.regex(text, /^[A-Za-z0-9+/=]+\n200 2 application\/grpc-web-text/);
  const empty = join(await temporaryDirectory(t), "empty");
  await writeFile(empty, Buffer.alloc(5));
  const web = await curl("-H", "Content-Type: application/grpc-web+proto", "--data-binary", `@${empty}`, "-o-", rpc);
  t.regex(
    web,
    new RegExp(`\\n\\x05${version}[^]*grpc-status: *0\\r\\n[^]*\\n200 2 application/grpc-web\\+proto$`, "i"),
  );
});

test("serves grpc-js with many calls on one connection, and with errors", async (t) => {
  const { port } = await startTestNode(t, { genesis: sampleGenesis });
  const client = connectGrpc(port);
  t.teardown(() => client.close());
  const answers = await Promise.all(Array.from({ length: 200 }, () => client.call(HealthService.method.getHealth)));
  t.true(answers.every(({ snapshot }) => snapshot?.status === HealthStatus.DORMANT));
  const error: unknown = await t.throwsAsync(client.call(StorageService.method.getProgram, { storageAddress: "x" }));
  t.like(readFailure(error), { code: 3, reason: "INVALID_REQUEST" });
});

/** Sends bytes one by one, and returns what arrives, until that is complete. */
async function sendSlowly(t: Teardown, bytes: Uint8Array, isComplete: (received: Buffer) => boolean): Promise<Buffer> {
  const { port } = await startTestNode(t, { genesis: sampleGenesis });
  const socket = connect(port, "127.0.0.1").setNoDelay(true);
  t.teardown(() => socket.destroy());
  async function send(): Promise<void> {
    for (const byte of bytes) {
      socket.write(Buffer.of(byte));
      await sleep(2);
    }
  }
  async function receive(): Promise<Buffer> {
    let received = Buffer.alloc(0);
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      received = Buffer.concat([received, chunk]);
      if (isComplete(received)) {
        return received;
      }
    }
    throw new Error("The node closed the connection.");
  }
  const [received] = await Promise.all([receive(), send()]);
  return received;
}

// Serial, since a client must send its first request within 10 s, and the other tests need all processors.
test.serial("serves an HTTP/2 client whose preface arrives byte by byte", async (t) => {
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
  const preface = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), settings]);
  const answer = await sendSlowly(t, preface, ({ length }) => length >= 18);
  // A SETTINGS frame, with which every HTTP/2 server starts.
  t.is(answer[3], 4);
  t.is(answer[4], 0);
});

test.serial("serves an HTTP/1.1 client whose request arrives byte by byte", async (t) => {
  const request = Buffer.from("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}");
  const answer = await sendSlowly(t, request, (received) => received.includes("-32600"));
  t.regex(answer.toString(), /^HTTP\/1.1 200 OK/);
});
