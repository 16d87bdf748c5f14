/** Metrics in the Prometheus text format. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { createMetrics } from "../../src/metrics/metrics.js";
import { until } from "../helpers/nodes/until.js";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import { connectGrpc } from "../helpers/wire/grpc-client.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import type { HealthBody } from "../helpers/process/health-shape.js";
import { readRow, type ScrapeErrors } from "../../src/metrics/row.js";
import { nodeMetrics } from "../../src/metrics/table.js";
import { parseMetrics } from "../helpers/process/prometheus.js";

const flags = { "metrics-enabled": true, "metrics-port": "0" };

async function scrape(node: TestNode) {
  const { ports } = await askJson<{ ports: { metrics: { actual: number } } }>(node.port, "/health");
  const { status, headers, text } = await ask(ports.metrics.actual, "/metrics");
  return {
    status,
    contentType: String(headers["content-type"]),
    metrics: parseMetrics(text),
    text,
    port: ports.metrics.actual,
  };
}

test("has a metric for every field of /health", async (t) => {
  const node = await startMember(t, flags);
  const { status, contentType, metrics, port } = await scrape(node);
  t.is(status, 200);
  t.regex(contentType, /^text\/plain; version=0\.0\.4/);
  const health = await askJson<HealthBody>(node.port, "/health");
  const value = (name: string, labels: Record<string, string> = {}): number | undefined =>
    metrics.value(`gatehouse_${name}`, labels);
  t.is(value("info", { version: health.version, version_name: health.version_name }), 1);
  t.is(value("accepting"), 1);
  t.is(value("mempool_size"), health.mempool_size!);
  t.true(value("uptime_seconds")! > 0 && value("uptime_seconds")! <= health.uptime_s);
  for (const name of ["ok", "degraded", "dormant", "failing"]) {
    t.is(value("health_status", { status: name }), Number(name === health.status), name);
  }
  t.is(value("dormant"), 0);
  t.is(value("boot_complete"), 1);
  for (const state of ["total", "ready", "failed", "skipped"] as const) {
    t.is(value("boot_steps", { state }), health.boot[`steps_${state}`]);
  }
  for (const [name, subsystem] of Object.entries(health.subsystems)) {
    t.is(value("subsystem_status", { subsystem: name, status: subsystem.status }), 1, name);
    t.is(value("subsystem_enabled", { subsystem: name }), Number(subsystem.enabled), name);
    t.is(value("subsystem_since_seconds", { subsystem: name }), subsystem.since! / 1000, name);
    t.is(value("subsystem_last_error_seconds", { subsystem: name }), NaN, name);
  }
  for (const [name, { requested, actual, drifted }] of Object.entries(health.ports)) {
    t.is(value("port", { subsystem: name, kind: "requested" }), requested);
    t.is(value("port", { subsystem: name, kind: "actual" }), actual);
    t.is(value("port_drifted", { subsystem: name }), Number(drifted));
  }
  t.is(value("certificate_not_after_timestamp_seconds", { subsystem: "rpc" }), NaN, "It speaks no TLS.");
  t.true(value("main_loop_heartbeat_age_seconds")! < 10);
  t.true(value("main_loop_iterations_total")! >= 1);
  t.is(value("main_loop_exited"), 0);
  t.is(value("uncaught_exceptions_total"), 0);
  t.is(value("unhandled_rejections_total"), 0);
  t.is(value("last_uncaught_seconds"), NaN);
  t.is(value("block_number"), 0);
  t.is(value("tree_leaves"), 0);
  t.is(value("programs_created_total"), 0);
  t.is(value("peers", { state: "known" }), 1);
  t.is(value("peers", { state: "online" }), 0);
  t.true(metrics.value("nodejs_eventloop_lag_p99_seconds", {})! >= 0);
  t.is((await ask(port, "/")).status, 404);
  t.is((await ask(port, "/metrics", { method: "POST" })).status, 405);
});

test("names of counters are those of counters", async (t) => {
  const { text } = await scrape(await startMember(t, flags));
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  t.true(types.length > 50);
  for (const [, name, type] of types) {
    t.is(name!.endsWith("_total"), type === "counter", name);
  }
});

test("counts requests by protocol, rpc and outcome, with their latency", async (t) => {
  const node = await startMember(t, flags);
  const client = connectGrpc(node.port);
  t.teardown(() => client.close());
  await ask(node.port, "/version");
  await ask(node.port, "/storage-program/nonsense");
  await ask(node.port, `/${"x".repeat(50)}`);
  await client.call(InfoService.method.getVersion);
  await ask(node.port, "/", { method: "POST", body: '{"jsonrpc":"2.0","id":1,"method":"info.getVersion"}' });
  await ask(node.port, "/gatehouse.info.v1.InfoService/GetVersion", {
    method: "POST",
    body: "{}",
    headers: { "Content-Type": "application/json" },
  });
  await ask(node.port, "/", {
    method: "POST",
    body: '{"jsonrpc":"2.0","id":1,"method":"storage.getProgram","params":["x"]}',
  });
  const { metrics } = await scrape(node);
  const rpc = "gatehouse.info.v1.InfoService/GetVersion";
  for (const protocol of ["http", "grpc", "json-rpc", "connect"]) {
    t.is(metrics.value("gatehouse_requests_total", { protocol, rpc, code: "OK" }), 1, protocol);
    t.is(metrics.value("gatehouse_request_duration_seconds_count", { protocol, rpc }), 1, protocol);
  }
  const rejected = { protocol: "http", rpc: "gatehouse.storage.v1.StorageService/GetProgram", code: "INVALID_REQUEST" };
  t.is(metrics.value("gatehouse_requests_total", rejected), 1);
  t.is(metrics.value("gatehouse_requests_total", { ...rejected, protocol: "json-rpc" }), 1);
  t.is(metrics.value("gatehouse_requests_total", { protocol: "http", rpc: "none", code: "NOT_FOUND" }), 1);
});

/** Opens a stream, and closes it after its first message. */
async function watchOnce(node: TestNode): Promise<void> {
  const client = createClient(HealthService, createGrpcTransport({ baseUrl: node.rpcUrl }));
  const controller = new AbortController();
  const watching = (async () => {
    for await (const { snapshot } of client.watchHealth({}, { signal: controller.signal })) {
      controller.abort(snapshot);
    }
  })();
  await watching.catch(() => undefined);
}

test("records stream durations apart from request latencies", async (t) => {
  const node = await startMember(t, flags);
  await watchOnce(node);
  const of = { protocol: "grpc", rpc: "gatehouse.health.v1.HealthService/WatchHealth" };
  await until(async () => {
    const { metrics } = await scrape(node);
    return metrics.value("gatehouse_stream_duration_seconds_count", of) === 1;
  });
  const { metrics } = await scrape(node);
  t.is(metrics.value("gatehouse_requests_total", { ...of, code: "CANCELLED" }), 1);
  t.is(metrics.value("gatehouse_request_duration_seconds_count", of), undefined);
});

test("omits or retains a value that cannot be read, and returns the others", async (t) => {
  let read: () => Promise<number> = () => Promise.reject(new Error("away"));
  const unread: string[] = [];
  const gauge = readRow<ScrapeErrors>("gauge");
  const counter = readRow<ScrapeErrors>("counter");
  const metrics = createMetrics(
    [
      gauge("test_asked", "Asked of the database.", [], () => read()),
      counter("test_asked_total", "Asked of the database, too.", [], () => read()),
      gauge("test_known", "Known.", [], () => 1),
      counter("test_unread_total", "Unread.", [], ({ scrapeErrors }) => scrapeErrors),
    ],
    () => Promise.resolve({}),
    (name) => unread.push(name),
  );
  const value = async (name: string) => parseMetrics(await metrics.text()).value(name, {});
  t.is(await value("test_asked"), undefined);
  t.is(await value("test_asked_total"), undefined);
  t.deepEqual(unread.sort().slice(0, 2), ["test_asked", "test_asked"]);
  t.is(await value("test_known"), 1);
  read = () => Promise.resolve(7);
  t.is(await value("test_asked"), 7);
  t.is(await value("test_asked_total"), 7);
  // A hung read is not repeated by later scrapes.
  let readCount = 0;
  read = () => {
    readCount++;
    return new Promise(() => undefined);
  };
  t.is(await value("test_asked"), 7);
  t.is(await value("test_asked_total"), 7);
  t.is(readCount, 2);
  t.is(await value("test_unread_total"), 10);
});

test("serves the metrics of the table in order, with their labels", async (t) => {
  // Some rows exist only with workers.
  const node = await startMember(t, { ...flags, workers: "2" });
  await ask(node.port, "/version");
  await watchOnce(node);
  for (const last of [/^gatehouse_stream_duration_seconds_count/m, /^gatehouse_worker_cpu_seconds\{/m]) {
    await until(async () => last.test((await scrape(node)).text));
  }
  const { metrics, port } = await scrape(node);
  t.deepEqual(
    metrics.names.filter((name) => name.startsWith("gatehouse_")),
    nodeMetrics.map(({ name }) => name),
  );
  const { text } = await ask(port, "/metrics");
  for (const { name, labels } of nodeMetrics) {
    const [, sample] = new RegExp(`^${name}(?:_bucket)?(?:\\{(.*)\\})? `, "m").exec(text) ?? [];
    const shown = [...(sample ?? "").matchAll(/(\w+)="/g)].map(([, label]) => label!);
    t.deepEqual(
      shown.filter((label) => label !== "le"),
      [...labels],
      name,
    );
  }
});

test("does not compile a row whose value is not nested as deep as its labels", (t) => {
  const gauge = readRow<object>("gauge");
  t.is(gauge("a", "A.", ["label"], () => ({ one: 1 })).type, "gauge");
  // @ts-expect-error -- a number where there is a label
  t.is(gauge("b", "B.", ["label"], () => 1).type, "gauge");
  // @ts-expect-error -- values of a label that there is not
  t.is(gauge("c", "C.", [], () => ({ one: 1 })).type, "gauge");
});
