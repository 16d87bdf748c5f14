/** The event stream of a client, over restarts of its node, and waiting for transactions. */
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import test from "ava";
import {
  createGatehouse,
  createProgram,
  GatehouseError,
  type GatehouseOptions,
  keyFromSeed,
  setField,
} from "gatehouse-client";
import { EventKind, EventService } from "../../gen/gatehouse/event/v1/event_pb.js";
import { heapBytes } from "../helpers/process/heap.js";
import { fixedPort, startMember, startTestNode } from "../helpers/nodes/start-node.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

const alice = keyFromSeed(new Uint8Array(32).fill(2));

function connect(t: Teardown, port: number, options: GatehouseOptions = {}) {
  const node = createGatehouse(`http://127.0.0.1:${port}`, { signer: alice, retry: { firstWaitMs: 10 }, ...options });
  t.teardown(() => node.close());
  return node;
}

test("watch resumes after a restart of the node, with the private events of its signer", async (t) => {
  const fixed = await fixedPort();
  const first = await startMember(t, fixed);
  const { port, dir } = first;
  const node = connect(t, port);
  const received: string[] = [];
  const loop = (async () => {
    const request = { fromBlock: 1n, owners: [alice.publicKey], kinds: [EventKind.PROGRAM, EventKind.BLOCK] };
    for await (const { cursor, event } of node.watch(request)) {
      if (event.case === "program") {
        received.push(`${cursor} ${event.value.fields.join()}`.trim());
      }
    }
  })();
  const { hash, storageAddress } = await node.submit(createProgram({ name: "notes", data: {}, access: "owner" }));
  await node.waitFor(hash);
  await until(() => received.length === 1);
  await first.stop();
  await startTestNode(t, { genesis: "genesis.json", ...fixed }, dir);
  const set = await node.submit(setField(storageAddress, "title", "x"));
  const { blockNumber } = await node.waitFor(set.hash);
  await until(() => received.length >= 2);
  t.deepEqual(received, ["1.1", `${blockNumber}.1 title`]);
  await node.close();
  await t.notThrowsAsync(loop, "closing the client ends the loop");
});

test("leaving the loop closes the stream, and an error ends it", async (t) => {
  const { port } = await startMember(t, { "streams-per-address": "2", "rate-limit-exempt": "192.0.2.1" });
  const node = connect(t, port);
  for (let i = 0; i < 5; i++) {
    for await (const { event } of node.watch()) {
      t.is(event.case, "progress");
      break;
    }
  }
  const rejected = await t.throwsAsync(node.watch({ from: "x" }).next(), { instanceOf: GatehouseError });
  t.is(rejected.reason, "INVALID_REQUEST");
});

test("a client retains no memory of a closed stream", async (t) => {
  const { port } = await startMember(t);
  const real = createConnectTransport({ httpVersion: "1.1", baseUrl: `http://127.0.0.1:${port}` });
  const signals: WeakRef<AbortSignal>[] = [];
  const transport: Transport = {
    unary: (...args) => real.unary(...args),
    stream: (method, signal, ...rest) => {
      signals.push(new WeakRef(signal!));
      return real.stream(method, signal, ...rest);
    },
  };
  const node = connect(t, port, { transport });
  for (let i = 0; i < 5; i++) {
    for await (const { event } of node.event.watch({})) {
      t.is(event.case, "progress");
      break;
    }
  }
  t.is(signals.length, 5);
  await until(() => {
    heapBytes();
    return signals.every((signal) => signal.deref() === undefined);
  });
});

test("concurrent waits share one stream, and poll a node without events", async (t) => {
  const { port } = await startMember(t);
  let streams = 0;
  let isOld = false;
  const transport = createConnectTransport({
    httpVersion: "1.1",
    baseUrl: `http://127.0.0.1:${port}`,
    interceptors: [
      (next) => async (request) => {
        if (request.service.typeName === EventService.typeName) {
          streams++;
          if (isOld) {
            throw new ConnectError("not implemented", Code.Unimplemented);
          }
        }
        return await next(request);
      },
    ],
  });
  const node = connect(t, port, { transport });
  const submitted = await Promise.all(
    ["a", "b", "c", "d"].map((name) => node.submit(createProgram({ name, data: {} }))),
  );
  const included = await Promise.all(submitted.map(({ hash }) => node.waitFor(hash)));
  t.deepEqual(
    included.map(({ hash }) => hash),
    submitted.map(({ hash }) => hash),
  );
  t.is(streams, 1);
  isOld = true;
  const { hash } = await node.submit(createProgram({ name: "e", data: {} }));
  t.true((await node.waitFor(hash)).blockNumber > 0n);
  const watching = await t.throwsAsync(node.watch().next(), { instanceOf: GatehouseError });
  t.is(watching.code, "Unimplemented");
});
