/**
 * The node's metrics, in the text format of Prometheus. What /health says has its mirror here, field by field, taken of
 * the same snapshot; requests are counted where they are settled. Labels are names of the contract, so there are never
 * many.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import { type HealthSnapshotSchema, HealthStatus, SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Outcome } from "../rpc/errors.js";

/** The health as the contract shows it. */
export type ShownHealth = MessageInitShape<typeof HealthSnapshotSchema>;

/** An answered request. */
export interface SettledRequest {
  readonly protocol: string;
  /** `package.Service/Method`; undefined where none was asked for. */
  readonly rpc: string | undefined;
  readonly code: Outcome;
  readonly latencyMs: number;
}

/** What the node knows beside its health. */
export interface NodeFacts {
  readonly block: number | undefined;
  /** Newest block of the verified peers; undefined while there is none. */
  readonly peerBlock: number | undefined;
  readonly peers: { readonly known: number; readonly verified: number; readonly online: number };
  readonly leaves: number;
  /** Storage programs that were ever made. */
  readonly programs: number;
  readonly requests: { readonly active: number; readonly limitedAddresses: number };
}

/** What the metrics are made of. */
export interface MetricsParts {
  readonly version: string;
  readonly versionName: string;
  readonly takeSnapshot: () => ShownHealth | Promise<ShownHealth>;
  readonly facts: () => Promise<NodeFacts>;
}

/** The metrics. */
export interface Metrics {
  readonly contentType: string;
  /** Counts a request. */
  count(request: SettledRequest): void;
  /** The text, as it is now. */
  text(): Promise<string>;
}

const statuses = ["ok", "degraded", "dormant", "failing"] as const;
const subsystemStatuses = ["pending", "running", "ready", "failed", "skipped", "dormant"] as const;

/** Builds the metrics. */
export function createMetrics({ version, versionName, takeSnapshot, facts }: MetricsParts): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[] = []): Gauge<L> =>
    new Gauge({ name: `gatehouse_${name}`, help, labelNames, registers });

  /** A counter that somebody else keeps. */
  const total = (name: string, help: string): ((value: number) => void) => {
    const counter = new Counter({ name: `gatehouse_${name}`, help, registers });
    return (value) => {
      counter.reset();
      counter.inc(value);
    };
  };

  const requests = new Counter({
    name: "gatehouse_requests_total",
    help: "Answered requests by protocol, rpc and outcome: OK, or the reason of the failure.",
    labelNames: ["protocol", "rpc", "code"] as const,
    registers,
  });
  const durations = new Histogram({
    name: "gatehouse_request_duration_seconds",
    help: "Time from the arrival of a request to its answer.",
    labelNames: ["protocol", "rpc"] as const,
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers,
  });

  gauge("info", "The node's version; always 1.", ["version", "version_name"]).set(
    { version, version_name: versionName },
    1,
  );
  const status = gauge("health_status", "1 for the status that /health has, 0 for the others.", ["status"]);
  const accepting = gauge("accepting", "1 while the node is synced and not catching up.");
  const dormant = gauge("dormant", "1 while the node is dormant.");
  const mempool = gauge("mempool_size", "Pending transactions; NaN while they cannot be counted.");
  const uptime = gauge("uptime_seconds", "Seconds since the process started.");
  const bootComplete = gauge("boot_complete", "1 once the boot has finished.");
  const bootSteps = gauge("boot_steps", "Boot steps by their state; total counts all.", ["state"]);
  const subsystem = gauge("subsystem_status", "1 for the status that the subsystem has.", ["subsystem", "status"]);
  const since = gauge("subsystem_since_seconds", "Time of the subsystem's last transition.", ["subsystem"]);
  const enabled = gauge("subsystem_enabled", "1 where the subsystem is enabled.", ["subsystem"]);
  const lastError = gauge("subsystem_last_error_seconds", "Time of the subsystem's last error.", ["subsystem"]);
  const port = gauge("port", "Ports by subsystem: requested and actual.", ["subsystem", "kind"]);
  const drifted = gauge("port_drifted", "1 where the bound port is not the requested one.", ["subsystem"]);
  const heartbeat = gauge("main_loop_heartbeat_age_seconds", "Seconds since the last tick; NaN before the first.");
  const iterations = total("main_loop_iterations_total", "Ticks of the main loop.");
  const exited = gauge("main_loop_exited", "1 once the main loop has exited.");
  const uncaught = total("uncaught_exceptions_total", "Exceptions that nobody caught.");
  const rejections = total("unhandled_rejections_total", "Rejections that nobody handled.");
  const lastUncaught = gauge("last_uncaught_seconds", "Time of the last exception that nobody caught.");
  const block = gauge("block_number", "Number of the newest block; NaN while there is none.");
  const behind = gauge("blocks_behind", "Blocks that verified peers have and this node has not; NaN while unknown.");
  const syncRate = gauge("sync_blocks_per_second", "Blocks applied a second while catching up, else 0.");
  const taskErrors = total("main_loop_task_errors_total", "Tasks of the main loop that failed.");
  const peers = gauge("peers", "Peers by what is known of them.", ["state"]);
  const programs = total("programs_created_total", "Storage programs that were ever made, deleted ones too.");
  const leaves = gauge("tree_leaves", "Leaves of the commitment tree.");
  const active = gauge("requests_in_flight", "Requests being answered.");
  const limited = gauge("rate_limited_addresses", "Addresses that are over their limit.");

  function mirror(snapshot: ShownHealth): void {
    const word = (HealthStatus[snapshot.status ?? 0] ?? "").toLowerCase();
    statuses.forEach((name) => status.set({ status: name }, Number(name === word)));
    accepting.set(Number(snapshot.accepting));
    dormant.set(Number(snapshot.dormant));
    mempool.set(snapshot.mempoolSize ?? NaN);
    uptime.set(snapshot.uptimeS ?? 0);
    const { boot, mainLoop, errors, subsystems = {}, ports = {} } = snapshot;
    bootComplete.set(Number(boot?.complete));
    bootSteps.set({ state: "total" }, boot?.stepsTotal ?? 0);
    bootSteps.set({ state: "ready" }, boot?.stepsReady ?? 0);
    bootSteps.set({ state: "failed" }, boot?.stepsFailed ?? 0);
    bootSteps.set({ state: "skipped" }, boot?.stepsSkipped ?? 0);
    for (const [name, state] of Object.entries(subsystems)) {
      const own = (SubsystemStatus[state.status ?? 0] ?? "").toLowerCase();
      subsystemStatuses.forEach((each) => subsystem.set({ subsystem: name, status: each }, Number(each === own)));
      since.set({ subsystem: name }, state.sinceMs === undefined ? NaN : Number(state.sinceMs) / 1000);
      enabled.set({ subsystem: name }, Number(state.enabled));
      lastError.set(
        { subsystem: name },
        state.lastError === undefined ? NaN : Number(state.lastError.atMs ?? 0) / 1000,
      );
    }
    for (const [name, { requested = 0, actual = 0, drifted: hasDrifted = false }] of Object.entries(ports)) {
      port.set({ subsystem: name, kind: "requested" }, requested);
      port.set({ subsystem: name, kind: "actual" }, actual);
      drifted.set({ subsystem: name }, Number(hasDrifted));
    }
    heartbeat.set(mainLoop?.heartbeatAgeS ?? NaN);
    iterations(Number(mainLoop?.iterationsTotal ?? 0));
    exited.set(Number(mainLoop?.exited));
    uncaught(Number(errors?.uncaughtTotal ?? 0));
    rejections(Number(errors?.unhandledRejectionTotal ?? 0));
    lastUncaught.set(errors?.lastUncaught === undefined ? NaN : Number(errors.lastUncaught.atMs ?? 0) / 1000);
    const { extra } = subsystems["main_loop"] ?? {};
    syncRate.set(extra?.sync?.blocksPerS ?? 0);
    taskErrors(Number(extra?.taskErrors ?? 0));
  }

  function mirrorFacts(known: NodeFacts): void {
    block.set(known.block ?? NaN);
    const isKnown = known.block !== undefined && known.peerBlock !== undefined;
    behind.set(isKnown ? Math.max(0, known.peerBlock - known.block) : NaN);
    peers.set({ state: "known" }, known.peers.known);
    peers.set({ state: "verified" }, known.peers.verified);
    peers.set({ state: "online" }, known.peers.online);
    leaves.set(known.leaves);
    programs(known.programs);
    active.set(known.requests.active);
    limited.set(known.requests.limitedAddresses);
  }

  return {
    contentType: registry.contentType,
    count({ protocol, rpc = "none", code, latencyMs }) {
      requests.inc({ protocol, rpc, code });
      durations.observe({ protocol, rpc }, latencyMs / 1000);
    },
    async text() {
      mirror(await takeSnapshot());
      mirrorFacts(await facts());
      return await registry.metrics();
    },
  };
}
