/** Clients that others wrote, all on the one port. */
import test from "ava";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { HealthService, HealthStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { connectGrpc } from "../helpers/grpc-client.js";
import { readFailure } from "../helpers/rpc-clients.js";
import { StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { sampleGenesis, startTestNode } from "../helpers/start-node.js";
import { bufCurl, run } from "../helpers/programs.js";

test("curl", async (t) => {
  const { port, rpcUrl } = await startTestNode(t, { genesis: sampleGenesis });
  const { stdout } = await run("curl", [
    "-sS",
    "-w",
    "\n%{http_code} %{http_version} %{content_type}",
    `${rpcUrl}/version`,
  ]);
  t.is(stdout, '"0.1.0"\n200 1.1 application/json; charset=utf-8');
  const { stdout: missing } = await run("curl", ["-sS", `http://localhost:${port}/nope`]);
  t.is((JSON.parse(missing) as { errorCode: string }).errorCode, "NOT_FOUND");
});

test("buf curl, over HTTP/2 without TLS", async (t) => {
  const { rpcUrl } = await startTestNode(t, { genesis: sampleGenesis });
  const stdout = await bufCurl(
    "--schema",
    ".",
    "--http2-prior-knowledge",
    `${rpcUrl}/gatehouse.health.v1.HealthService/GetHealth`,
  );
  const { snapshot } = JSON.parse(stdout) as { snapshot: { status: string; dormant: boolean } };
  t.is(snapshot.status, "HEALTH_STATUS_DORMANT");
  t.true(snapshot.dormant);
});

test("grpc-js, in one connection with many calls, and with failures", async (t) => {
  const { port } = await startTestNode(t, { genesis: sampleGenesis });
  const client = connectGrpc(port);
  t.teardown(() => client.close());
  const answers = await Promise.all(Array.from({ length: 200 }, () => client.call(HealthService.method.getHealth)));
  t.true(answers.every(({ snapshot }) => snapshot?.status === HealthStatus.DORMANT));
  const error: unknown = await t.throwsAsync(client.call(StorageService.method.getProgram, { storageAddress: "x" }));
  t.like(readFailure(error), { code: 3, reason: "INVALID_REQUEST" });
});

test("an HTTP/2 client whose preface arrives byte by byte", async (t) => {
  const { port } = await startTestNode(t, { genesis: sampleGenesis });
  const socket = connect(port, "127.0.0.1");
  t.teardown(() => socket.destroy());
  socket.setNoDelay(true);
  const received: Buffer[] = [];
  socket.on("data", (bytes: Buffer) => received.push(bytes));
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
  for (const byte of Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), settings])) {
    socket.write(Buffer.from([byte]));
    await sleep(3);
  }
  while (Buffer.concat(received).length < 18) {
    await sleep(10);
  }
  const answer = Buffer.concat(received);
  // A SETTINGS frame, as every HTTP/2 server begins.
  t.is(answer[3], 4);
  t.is(answer[4], 0);
});

test("an HTTP/1.1 client whose request arrives byte by byte", async (t) => {
  const { port } = await startTestNode(t, { genesis: sampleGenesis });
  const socket = connect(port, "127.0.0.1");
  t.teardown(() => socket.destroy());
  socket.setNoDelay(true);
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  for (const byte of "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}") {
    socket.write(byte);
    await sleep(1);
  }
  while (!text.includes("-32600")) {
    await sleep(10);
  }
  t.regex(text, /^HTTP\/1.1 200 OK/);
});
