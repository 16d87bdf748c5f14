/** Verified reads from a node whose responses never end: limits in bytes and time end them. */
import { create, toBinary } from "@bufbuild/protobuf";
import test, { type ExecutionContext } from "ava";
import { once } from "node:events";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createGatehouse, GatehouseError, type VerifyOptions } from "gatehouse-client";
import { GetGenesisResponseSchema } from "../../gen/gatehouse/info/v1/info_pb.js";
import { StateService } from "../../gen/gatehouse/state/v1/state_pb.js";
import { createLogging } from "../../src/base/logging/log.js";
import { startLight } from "../../src/light/light-node.js";
import { createStartRead } from "../../src/light/upstream.js";
import { genesisOf, testKey } from "../helpers/chain/keys.js";
import { ask } from "../helpers/wire/plain-client.js";
import { runCli } from "../helpers/nodes/run-cli.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { testNetwork } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";

/** A protobuf field with an unknown number, so that a message is invalid only by its size. */
const padding = Buffer.concat([Buffer.from([0xfa, 0x07, 0x80, 0x80, 0x40]), Buffer.alloc(1024 * 1024)]);

/** Sends 10 bytes every 20 ms. */
const drip = (response: ServerResponse): void => {
  const timer = setInterval(() => response.write(padding.subarray(0, 10)), 20);
  response.on("close", () => clearInterval(timer));
};

/** Sends as fast as the other side reads. */
const flood = (response: ServerResponse): void => {
  const send = (): void => {
    while (!response.closed && response.write(padding));
  };
  response.on("drain", send);
  send();
};

/** Starts a server, and returns its URL. */
async function serve(t: Teardown, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Starts a server whose responses never end, and counts the bytes that it has sent. */
async function startEndless(t: Teardown, send: (response: ServerResponse) => void) {
  let open = 0;
  let sentBytes = 0;
  const url = await serve(t, (request, response) => {
    open++;
    response.on("close", () => {
      open--;
      sentBytes += response.socket?.bytesWritten ?? request.socket.bytesWritten;
    });
    response.on("error", () => undefined);
    response.writeHead(200, { "Content-Type": "application/proto" });
    send(response);
  });
  return { url, open: () => open, sentMib: () => sentBytes / 1024 / 1024 };
}

const genesis = genesisOf(testKey(1));
const address = `stor-${"0".repeat(40)}`;
/** The response limit, and the buffers of both sides. */
const maxMib = 5 + 8;

/** Reads a field with the client package, and returns the error. */
async function readField(t: ExecutionContext, url: string, verify: VerifyOptions, timeoutMs?: number) {
  const client = createGatehouse(url, { verify, ...(timeoutMs !== undefined && { timeoutMs }) });
  t.teardown(() => client.close());
  const read = client.storage.getField({ storageAddress: address, field: "a" });
  return await t.throwsAsync(read, { instanceOf: GatehouseError });
}

test("the client package ends a slow read at its timeout, and closes the connection", async (t) => {
  const node = await startEndless(t, drip);
  const startedMs = Date.now();
  t.is((await readField(t, node.url, { genesis }, 500)).reason, "DEADLINE_EXCEEDED");
  t.true(Date.now() - startedMs < 5_000);
  await until(() => node.open() === 0);
});

test("the client package reads at most 5 MiB of a response", async (t) => {
  const node = await startEndless(t, flood);
  t.is((await readField(t, node.url, { genesis })).message, "The response is larger than 5242880 bytes.");
  await until(() => node.open() === 0);
  t.true(node.sentMib() < maxMib, `${node.sentMib()} MiB`);
});

test("the calls of one read share its timeout", async (t) => {
  const node = await startEndless(t, drip);
  const read = createStartRead(node.url, { timeoutMs: 2_000 })();
  const startedMs = Date.now();
  for (let calls = 0; calls < 3; calls++) {
    await t.throwsAsync(read(StateService.method.getProof, {}), { message: "the operation timed out" });
  }
  t.true(Date.now() - startedMs < 4_000, `${Date.now() - startedMs} ms`);
});

test("the calls of one read of the client package share its timeout", async (t) => {
  const timeouts: number[] = [];
  const url = await serve(t, (request, response) => {
    timeouts.push(Number(request.headers["connect-timeout-ms"]));
    if (!request.url!.endsWith("GetGenesis")) {
      response.writeHead(404).end();
      return;
    }
    // The genesis arrives after 500 ms.
    setTimeout(() => {
      response.writeHead(200, { "Content-Type": "application/proto" });
      response.end(toBinary(GetGenesisResponseSchema, create(GetGenesisResponseSchema, { genesis })));
    }, 500);
  });
  await readField(t, url, { genesisHash: testNetwork }, 20_000);
  t.is(timeouts.length, 2);
  t.true(timeouts[0]! <= 20_000 && timeouts[1]! <= 19_510, String(timeouts));
});

test("a light node ends a slow read at its timeout, and responds with 503", async (t) => {
  const node = await startEndless(t, drip);
  const { log } = createLogging({ level: "silent", json: true });
  const dir = await temporaryDirectory(t);
  const options = { urls: [node.url], genesisHash: testNetwork, dir, port: 0, maxAgeS: 3_600, log };
  const light = await startLight({ ...options, timeoutMs: 500 });
  t.teardown(() => light.stop());
  const startedMs = Date.now();
  const { text } = await ask(light.port, `/storage-program/${address}/field/a`);
  t.regex(text, /None of this light node's upstream nodes/);
  t.true(Date.now() - startedMs < 5_000);
  await until(() => node.open() === 0);
});

test("a command reads a limited number of bytes of a response", async (t) => {
  const node = await startEndless(t, flood);
  const { code, stderr } = await runCli(["storage", "get", address, "--node", node.url, "--verify", testNetwork]);
  t.not(code, 0);
  t.regex(stderr, /message size .* is larger than configured readMaxBytes|larger than/);
  await until(() => node.open() === 0);
  t.true(node.sentMib() < 17 + 8, `${node.sentMib()} MiB`);
});
