/**
 * Every metric of the node, one row each: name, help text and source of the value. The metrics page, the list in
 * docs/metrics.md (`npm run docs`) and the names that alerts may use derive from this table. Each field of /health has
 * a metric. Label values are names from the API, so there are never many.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type HealthSnapshotSchema, HealthStatus, SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { type Metric, readRow, type ScrapeErrors } from "./row.js";

/** Sources of the values: the health snapshot of the API, and the parts of the node that the rows use. */
export interface Sources {
  readonly health: MessageInitShape<typeof HealthSnapshotSchema>;
  readonly chain: { head(): { readonly number: bigint } | undefined };
  readonly network: {
    /** Returns the latest block number of the verified peers; undefined while there is none. */
    peerBlock(): bigint | undefined;
    countPeers(): { readonly known: number; readonly verified: number; readonly online: number };
  };
  readonly programs: { createdCount(): Promise<number> };
  readonly tree: { root(): Counts<"leafCount"> | Promise<Counts<"leafCount">> };
  /** Mempool; undefined on a node that only reads. */
  readonly mempool:
    | { stats(): Counts<"bytes" | "largestSource"> & { readonly refused: Readonly<Record<string, number>> } }
    | undefined;
  /** Verifier of the stored data; undefined if there is no chain to verify. */
  readonly verifier:
    | { state(): Counts<"blocksDone" | "blocksTotal" | "findings"> & { readonly completedMs: number | undefined } }
    | undefined;
  readonly edge: {
    stats(): Counts<
      "activeRequests" | "openStreams" | "openConnections" | "unansweredRequests" | "reservedBytes" | "blockedIps"
    >;
    readonly maxConnections: number;
  };
  /** Worker processes; undefined if the main process serves the port itself. */
  readonly workers:
    | {
        state(): Counts<"running" | "configured" | "restarts"> & {
          readonly vitals: Readonly<Record<string, Counts<"residentBytes" | "cpuSeconds">>>;
        };
      }
    | undefined;
  readonly logLines: { lost(): number };
  readonly tls: { notAfterMs(): number | undefined };
}

type Counts<Name extends string> = Readonly<Record<Name, number>>;

type ReadValue = (sources: Sources & ScrapeErrors) => number | Promise<number>;

const gauges = readRow<Sources & ScrapeErrors>("gauge");
const counters = readRow<Sources & ScrapeErrors>("counter");
const gauge = (name: string, help: string, value: ReadValue) => gauges(name, help, [], value);
const counter = (name: string, help: string, value: ReadValue) => counters(name, help, [], value);

/** Rows of the node, in page order. */
export const nodeMetrics: readonly Metric<Sources & ScrapeErrors>[] = [
  {
    name: "gatehouse_requests_total",
    help: "Requests by protocol, rpc and outcome: OK, the reason of the error, or CANCELLED if the caller left before the response.",
    type: "counter",
    labels: ["protocol", "rpc", "code"],
    perRequest: () => 1,
  },
  {
    name: "gatehouse_request_duration_seconds",
    help: "Time from the arrival of a request to its response, without streams.",
    type: "histogram",
    labels: ["protocol", "rpc"],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    perRequest: ({ latencyMs, isStream }) => (isStream ? undefined : latencyMs / 1000),
  },
  {
    name: "gatehouse_stream_duration_seconds",
    help: "Time for which a stream was open.",
    type: "histogram",
    labels: ["protocol", "rpc"],
    buckets: [0.1, 1, 10, 60, 600, 3600, 36_000],
    perRequest: ({ latencyMs, isStream }) => (isStream ? latencyMs / 1000 : undefined),
  },

  gauges("gatehouse_info", "The node's version; always 1.", ["version", "version_name"], ({ health }) => ({
    [health.version ?? ""]: { [health.versionName ?? ""]: 1 },
  })),
  gauges(
    "gatehouse_health_status",
    "1 for the current status of /health, 0 for the others.",
    ["status"],
    ({ health }) => oneHot(HealthStatus, health.status),
  ),
  gauge("gatehouse_accepting", "1 while the node is synced and not catching up.", ({ health }) =>
    Number(health.accepting),
  ),
  gauge("gatehouse_dormant", "1 while the node is dormant.", ({ health }) => Number(health.dormant)),
  gauge(
    "gatehouse_mempool_size",
    "Pending transactions; NaN while the count is unavailable.",
    ({ health }) => health.mempoolSize ?? NaN,
  ),
  gauge(
    "gatehouse_mempool_bytes",
    "Bytes of pending transactions; NaN on a read-only node.",
    ({ mempool }) => mempool?.stats().bytes ?? NaN,
  ),
  gauge(
    "gatehouse_mempool_largest_origin_ratio",
    "Largest ratio of the mempool's capacity used by one address, 0 to 1; NaN on a read-only node.",
    ({ mempool }) => mempool?.stats().largestSource ?? NaN,
  ),
  counters(
    "gatehouse_mempool_refused_total",
    "Transactions rejected by the mempool's capacity or a quota (share), by a rate (rate), or for an unlisted writer (writers).",
    ["reason"],
    ({ mempool }) => mempool?.stats().refused ?? {},
  ),
  gauge("gatehouse_uptime_seconds", "Seconds since the process started.", ({ health }) => health.uptimeS ?? 0),
  gauge("gatehouse_boot_complete", "1 after the boot has finished.", ({ health }) => Number(health.boot?.complete)),
  gauges("gatehouse_boot_steps", "Boot steps by state; total counts all.", ["state"], ({ health: { boot } }) => ({
    total: boot?.stepsTotal ?? 0,
    ready: boot?.stepsReady ?? 0,
    failed: boot?.stepsFailed ?? 0,
    skipped: boot?.stepsSkipped ?? 0,
  })),

  gauges(
    "gatehouse_subsystem_status",
    "1 for the current status of the subsystem, 0 for the others.",
    ["subsystem", "status"],
    ({ health }) => mapValues(health.subsystems, ({ status }) => oneHot(SubsystemStatus, status)),
  ),
  gauges("gatehouse_subsystem_since_seconds", "Time of the subsystem's last transition.", ["subsystem"], ({ health }) =>
    mapValues(health.subsystems, ({ sinceMs }) => seconds(sinceMs)),
  ),
  gauges("gatehouse_subsystem_enabled", "1 if the subsystem is enabled.", ["subsystem"], ({ health }) =>
    mapValues(health.subsystems, ({ enabled }) => Number(enabled)),
  ),
  gauges(
    "gatehouse_subsystem_last_error_seconds",
    "Time of the subsystem's last error, until its cause is gone.",
    ["subsystem"],
    ({ health }) => mapValues(health.subsystems, ({ lastError }) => timeOf(lastError)),
  ),
  gauges("gatehouse_port", "Ports by subsystem: requested and actual.", ["subsystem", "kind"], ({ health }) =>
    mapValues(health.ports, ({ requested = 0, actual = 0 }) => ({ requested, actual })),
  ),
  gauges("gatehouse_port_drifted", "1 if the bound port differs from the requested one.", ["subsystem"], ({ health }) =>
    mapValues(health.ports, ({ drifted = false }) => Number(drifted)),
  ),
  gauges(
    "gatehouse_certificate_not_after_timestamp_seconds",
    "Time at which the port's certificate expires; NaN without TLS.",
    ["subsystem"],
    ({ tls }) => ({ rpc: (tls.notAfterMs() ?? NaN) / 1000 }),
  ),

  gauge(
    "gatehouse_main_loop_heartbeat_age_seconds",
    "Seconds since the last tick; NaN before the first.",
    ({ health }) => health.mainLoop?.heartbeatAgeS ?? NaN,
  ),
  counter("gatehouse_main_loop_iterations_total", "Ticks of the main loop.", ({ health }) =>
    Number(health.mainLoop?.iterationsTotal ?? 0),
  ),
  gauge("gatehouse_main_loop_exited", "1 after the main loop has exited.", ({ health }) =>
    Number(health.mainLoop?.exited),
  ),
  counter("gatehouse_uncaught_exceptions_total", "Uncaught exceptions.", ({ health }) =>
    Number(health.errors?.uncaughtTotal ?? 0),
  ),
  counter("gatehouse_unhandled_rejections_total", "Unhandled promise rejections.", ({ health }) =>
    Number(health.errors?.unhandledRejectionTotal ?? 0),
  ),
  gauge("gatehouse_last_uncaught_seconds", "Time of the last uncaught exception.", ({ health }) =>
    timeOf(health.errors?.lastUncaught),
  ),

  gauge("gatehouse_block_number", "Number of the latest block; NaN while there is none.", ({ chain }) =>
    numberOf(chain.head()?.number),
  ),
  gauge(
    "gatehouse_blocks_behind",
    "Blocks that verified peers have and this node lacks; NaN while unknown.",
    ({ chain, network }) => Math.max(0, numberOf(network.peerBlock()) - numberOf(chain.head()?.number)),
  ),
  gauge(
    "gatehouse_sync_blocks_per_second",
    "Blocks applied per second while catching up, otherwise 0.",
    ({ health }) => health.subsystems?.["main_loop"]?.extra?.sync?.blocksPerS ?? 0,
  ),
  counter("gatehouse_main_loop_task_errors_total", "Failed tasks of the main loop.", ({ health }) =>
    Number(health.subsystems?.["main_loop"]?.extra?.taskErrors ?? 0),
  ),
  gauges("gatehouse_peers", "Peers by state.", ["state"], ({ network }) => network.countPeers()),
  counter(
    "gatehouse_programs_created_total",
    "Storage programs ever created, including deleted ones.",
    ({ programs }) => programs.createdCount(),
  ),
  gauge("gatehouse_tree_leaves", "Leaves of the commitment tree.", async ({ tree }) => (await tree.root()).leafCount),
  gauges(
    "gatehouse_verify_blocks",
    "Blocks that the scan of the stored data has verified (verified), and has to verify (total).",
    ["state"],
    ({ verifier }) => {
      const { blocksDone = NaN, blocksTotal = NaN } = verifier?.state() ?? {};
      return { verified: blocksDone, total: blocksTotal };
    },
  ),
  gauge(
    "gatehouse_verify_completed_seconds",
    "Time at which the last full scan of the stored data finished; NaN before the first.",
    ({ verifier }) => (verifier?.state().completedMs ?? NaN) / 1000,
  ),
  gauge(
    "gatehouse_verify_findings",
    "Corrupt records in the database.",
    ({ verifier }) => verifier?.state().findings ?? NaN,
  ),
  gauge(
    "gatehouse_requests_in_flight",
    "Requests in flight, without streams.",
    ({ edge }) => edge.stats().activeRequests,
  ),
  gauge(
    "gatehouse_unanswered_requests",
    "Requests and streams that have arrived and are unanswered, admitted or not.",
    ({ edge }) => edge.stats().unansweredRequests,
  ),
  gauge("gatehouse_open_streams", "Open streams.", ({ edge }) => edge.stats().openStreams),
  gauge(
    "gatehouse_open_connections",
    "Open connections of the RPC and MCP ports.",
    ({ edge }) => edge.stats().openConnections,
  ),
  gauge(
    "gatehouse_max_connections",
    "Limit on the open connections, by the limit on open files.",
    ({ edge }) => edge.maxConnections,
  ),
  gauge(
    "gatehouse_held_bytes",
    "Bytes of requests, and of responses that clients have not read yet.",
    ({ edge }) => edge.stats().reservedBytes,
  ),
  gauge("gatehouse_rate_limited_addresses", "Addresses over their limit.", ({ edge }) => edge.stats().blockedIps),
  gauges(
    "gatehouse_workers",
    "Worker processes that serve the RPC port: running and expected.",
    ["state"],
    ({ workers }) => {
      const { running = 0, configured = 0 } = workers?.state() ?? {};
      return { running, configured };
    },
  ),
  counter(
    "gatehouse_worker_restarts_total",
    "Workers replaced after they exited or hung.",
    ({ workers }) => workers?.state().restarts ?? 0,
  ),
  gauges("gatehouse_worker_resident_memory_bytes", "Resident memory of a worker.", ["worker"], ({ workers }) =>
    mapValues(workers?.state().vitals, ({ residentBytes }) => residentBytes),
  ),
  gauges(
    "gatehouse_worker_cpu_seconds",
    "CPU time of a worker since its start; 0 again after a replacement.",
    ["worker"],
    ({ workers }) => mapValues(workers?.state().vitals, ({ cpuSeconds }) => cpuSeconds),
  ),
  counter(
    "gatehouse_log_lines_lost_total",
    "Log lines dropped: the disk was full, or the reader was gone or too slow.",
    ({ logLines }) => logLines.lost(),
  ),
  counter(
    "gatehouse_metrics_unread_total",
    "Metric values that could not be read within 1 s; the previous value stays.",
    ({ scrapeErrors }) => scrapeErrors,
  ),
];

/** Returns one-hot values: 1 for the current value of an API enumeration and 0 for each other value. */
function oneHot(values: Readonly<Record<number, string>>, current = 0): Record<string, number> {
  return Object.fromEntries(
    Object.entries(values)
      .filter(([number]) => Number(number) > 0)
      .map(([number, name]) => [name.toLowerCase(), Number(Number(number) === current)]),
  );
}

function mapValues<T, V>(record: Readonly<Record<string, T>> = {}, read: (value: T) => V): Record<string, V> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, read(value)]));
}

/** Converts a block number; NaN if there is no block. */
function numberOf(block: bigint | undefined): number {
  return block === undefined ? NaN : Number(block);
}

/** Converts milliseconds to seconds since the epoch; NaN if there is no time. */
function seconds(atMs: bigint | undefined): number {
  return atMs === undefined ? NaN : Number(atMs) / 1000;
}

function timeOf(error: { readonly atMs?: bigint } | undefined): number {
  return error === undefined ? NaN : seconds(error.atMs ?? 0n);
}
