/** Traces, as a collector receives them. */
import test from "ava";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { startMember } from "../helpers/nodes/start-node.js";
import { ask } from "../helpers/wire/plain-client.js";
import { until } from "../helpers/nodes/until.js";

interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue: string } }[];
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: Span["attributes"] };
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
  }[];
}

test("exports a span per request as a child of the caller's span, and the last spans at shutdown", async (t) => {
  const exports: Export[] = [];
  const collector = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      t.is(request.url, "/v1/traces");
      exports.push(JSON.parse(Buffer.concat(chunks).toString()) as Export);
      response.writeHead(200, { "Content-Type": "application/json" }).end("{}");
    });
  }).listen(0, "127.0.0.1");
  await once(collector, "listening");
  t.teardown(() => collector.close());
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const node = await startMember(t, { "otlp-endpoint": endpoint });
  const spans = (): Span[] =>
    exports.flatMap(({ resourceSpans }) =>
      resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)),
    );
  const value = ({ attributes }: { readonly attributes: Span["attributes"] }, key: string): string | undefined =>
    attributes.find((attribute) => attribute.key === key)?.value.stringValue;

  const traceId = "0af7651916cd43dd8448eb211c80319c";
  await ask(node.port, "/version", { headers: { traceparent: `00-${traceId}-b7ad6b7169203331-01` } });
  const refused = await ask(node.port, "/storage-program/nonsense");
  await until(() => spans().some(({ name }) => name.endsWith("StorageService/GetProgram")));
  const child = spans().find(({ name }) => name === "gatehouse.info.v1.InfoService/GetVersion")!;
  t.is(child.traceId, traceId);
  t.is(child.parentSpanId, "b7ad6b7169203331");
  t.is(value(child, "rpc.method"), "GetVersion");
  t.is(value(child, "gatehouse.code"), "OK");
  t.true(BigInt(child.endTimeUnixNano) >= BigInt(child.startTimeUnixNano));
  const other = spans().find(({ name }) => name.endsWith("StorageService/GetProgram"))!;
  t.is(value(other, "gatehouse.code"), "INVALID_REQUEST");
  t.is(value(other, "gatehouse.request_id"), refused.headers["x-request-id"] as string);
  t.is(value(exports[0]!.resourceSpans[0]!.resource, "service.instance.id"), node.publicKey);
  await ask(node.port, "/genesis");
  await node.stop();
  t.true(spans().some(({ name }) => name.endsWith("InfoService/GetGenesis")));
});

test("works normally if the collector is unreachable", async (t) => {
  const node = await startMember(t, { "otlp-endpoint": "http://127.0.0.1:9" });
  for (let i = 0; i < 100; i++) {
    t.is((await ask(node.port, "/version")).status, 200);
  }
  await node.stop();
  t.like(node.processErrors.counters, { uncaughtTotal: 0n, unhandledRejectionTotal: 0n });
});
