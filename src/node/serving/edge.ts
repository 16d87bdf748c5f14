/** Admission layer of the public port, and reports on each admitted request: access log, metrics and traces. */
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { setTimeout as sleep } from "node:timers/promises";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { SearchService } from "../../../gen/gatehouse/search/v1/search_pb.js";
import { StateService } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { StorageService } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { ZkService } from "../../../gen/gatehouse/zk/v1/zk_pb.js";
import { loadOptional } from "../../base/async/optional-package.js";
import { createErrorThrottle } from "../../base/logging/error-throttle.js";
import { version } from "../../base/version.js";
import type { Chain } from "../../chain/chain.js";
import { defaultConnections } from "../../edge/connection-limit.js";
import { createEdge, type Edge, type EdgeSettings, type EdgeStats } from "../../edge/edge.js";
import { defaultOverload, defaultStreams } from "../../edge/concurrency.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import type { RequestCounter } from "../../metrics/metrics.js";
import { nodeMetrics } from "../../metrics/table.js";
import type { Traces } from "../../metrics/traces.js";
import { RpcError } from "../../rpc/errors.js";
import type { ServedMethod } from "../../rpc/service.js";
import type { NodeChain } from "../chain/chain.js";
import { countWorkers, type NodeCore } from "../lifecycle/core.js";
import { howToRaise, neededDescriptors } from "../lifecycle/descriptors.js";
import type { NodeHealth } from "./health.js";
import type { NodeNetwork } from "../network/network.js";
import type { PublicFacts } from "./public-facts.js";
import type { NodeTls } from "./tls.js";
import type { DataVerifier } from "../data/data-verifier.js";
import type { NodeWorkers } from "./workers.js";

/** Sources of metrics and traces, available once the node has booted. */
interface ObservedDeps extends Pick<NodeChain, "chain" | "pool" | "data"> {
  readonly key: NodeKey;
  readonly network: NodeNetwork;
  readonly verifier: DataVerifier | undefined;
}

export async function createNodeEdge(
  core: Pick<
    NodeCore,
    "bus" | "config" | "connections" | "log" | "logLines" | "memory" | "onShutdown" | "overload" | "subsystems" | "warn"
  >,
  deps: {
    readonly facts: PublicFacts;
    readonly health: NodeHealth;
    readonly tls: NodeTls;
    readonly workers: NodeWorkers | undefined;
  },
) {
  const { config, log, warn } = core;
  const { workers } = deps;
  const processes = countWorkers(config) || 1;
  const maxConnections = Math.min(defaultConnections.total, core.connections.public * processes);
  if (maxConnections < defaultConnections.total) {
    const needed = neededDescriptors(Math.ceil(defaultConnections.total / processes));
    warn(
      "rpc",
      `The public port accepts at most ${maxConnections} connections instead of ${defaultConnections.total}, because of the limit on open files. Raise it to ${needed}: ${howToRaise}.`,
    );
  }
  let observed: ObservedDeps | undefined;
  let traces: Traces | undefined;
  /** Returns the usage of this process and of all workers. */
  const edgeStats = (): EdgeStats | Promise<EdgeStats> => workers?.addTo(edge.stats()) ?? edge.stats();
  const throttle = createErrorThrottle({
    log,
    level: "warn",
    fields: { subsystem: "metrics" },
    message: "The value of a metric could not be read",
  });
  const metrics = config.metricsEnabled
    ? (await import("../../metrics/metrics.js")).createMetrics(
        nodeMetrics,
        async () => {
          const [stats, health] = await Promise.all([edgeStats(), deps.health.takeSnapshot()]);
          // The metrics port is bound only after the boot has called `observe`.
          const { data, pool, ...parts } = observed!;
          const { mempool } = pool;
          const edge = { stats: () => stats, maxConnections };
          return { ...deps, ...data, ...parts, mempool, edge, logLines: core.logLines, health };
        },
        (metric, error) => throttle.failed(error, { metric }),
        () => workers?.requests() ?? Promise.resolve([]),
      )
    : undefined;
  const limits = limitsOf(core, core.connections.public);
  const edge = createPublicEdge(core, { ...deps, requests: metrics, traces: () => traces }, limits);
  workers?.shareUsage(edge);
  showReason(core, () => edge.overload() ?? workers?.overload() ?? deps.tls.problem());
  if (config.identityMode === "trusted-header") {
    warn(
      "rpc",
      "The identity header is trusted without a signature: allow only the gateway that sets it to reach this node.",
    );
  }
  /** Sets the sources of the metrics, and starts the traces. */
  const observe = async (sources: ObservedDeps): Promise<void> => {
    observed = sources;
    traces = await startTraces(core, sources.key);
  };
  return { edge, edgeStats, metrics, observe };
}

/**
 * Creates the edge of the public port, in any process that serves it.
 *
 * @param deps.requests counter of requests; undefined if metrics are disabled.
 * @param deps.traces returns the traces; undefined until they have started.
 */
export function createPublicEdge(
  core: Pick<NodeCore, "bus" | "config" | "log" | "onShutdown" | "warn">,
  deps: {
    readonly facts: PublicFacts;
    readonly requests: Pick<RequestCounter, "count"> | undefined;
    readonly traces: () => Traces | undefined;
  },
  limits: ReturnType<typeof limitsOf>,
): Edge {
  const { facts, requests, traces } = deps;
  const { config, log, warn, onShutdown } = core;
  const edge = createEdge({
    trustedProxies: config.trustedProxies,
    identityMode: config.identityMode,
    identityForm: config.identityForm,
    get network() {
      return facts.genesis()?.hash;
    },
    rateLimitPerMinute: config.rateLimitPerMinute,
    rateLimitExempt: config.rateLimitExempt,
    ...limits,
    isShared: countWorkers(config) > 0,
    headersOf: createBlockHeaders(facts.chain),
    untilBlock: createBlockWaits(core, facts.chain),
    onAccess: (line) => log.info({ access: true, ...line }, "Answered"),
    ...((requests ?? config.otlpEndpoint) !== undefined && {
      onFinished(request, arrival) {
        requests?.count(request);
        traces()?.record({ ...request, header: (name) => arrival.header(name) });
      },
    }),
    onBan: (address) =>
      log.warn({ subsystem: "rpc", address }, "An address is banned for 10 s, because all its traffic is abusive"),
    onUntrustedForwarding: () =>
      warn(
        "rpc",
        "Requests are forwarded from this machine, but --trusted-proxies is empty: all clients share one address. Add the proxy.",
      ),
  });
  onShutdown("the edge", () => edge.stop());
  return edge;
}

/** Interval in milliseconds at which `/health` is told whether the public port rejects requests, or has a bad certificate. */
const showEveryMs = 1_000;

function showReason(
  { subsystems, onShutdown }: Pick<NodeCore, "onShutdown" | "subsystems">,
  reason: () => string | undefined,
): void {
  const timer = setInterval(() => subsystems.set("rpc", { extra: { reason: reason() } }), showEveryMs).unref();
  onShutdown("the report of the public port", () => clearInterval(timer));
}

/** Limit on the wait in milliseconds. */
const maxWaitMs = 1_000;
/** Delay in seconds after which clients should retry. */
const retryAfterS = 1;

/**
 * Creates a function that waits for a block that a client has seen elsewhere. The function returns undefined if the node
 * has the block. Otherwise it returns a promise, which rejects with STATE_NOT_READY if the block does not arrive within
 * 1 s.
 */
function createBlockWaits(
  { bus }: Pick<NodeCore, "bus">,
  chain: Pick<Chain, "head">,
): (minBlock: bigint) => Promise<void> | undefined {
  let wake = (): void => undefined;
  let nextBlock = new Promise<void>((resolve) => (wake = resolve));
  const wakeAll = (): void => {
    wake();
    nextBlock = new Promise((resolve) => (wake = resolve));
  };
  bus.on("blockApplied", wakeAll);
  bus.on("headFound", wakeAll);
  const hasBlock = (minBlock: bigint): boolean => (chain.head()?.number ?? -1n) >= minBlock;

  async function wait(minBlock: bigint): Promise<void> {
    const timeout = sleep(maxWaitMs, true, { ref: false });
    while (!hasBlock(minBlock)) {
      if ((await Promise.race([nextBlock, timeout])) === true) {
        const at = chain.head()?.number;
        const position = at === undefined ? "has no block yet" : `is at block ${at}`;
        throw new RpcError("STATE_NOT_READY", `This node ${position}; try again in ${retryAfterS} s.`, retryAfterS);
      }
    }
  }

  return (minBlock) => (hasBlock(minBlock) ? undefined : wait(minBlock));
}

/** Services that return data that blocks change. */
const blockServices: ReadonlySet<object> = new Set([
  ChainService,
  SearchService,
  StateService,
  StorageService,
  ZkService,
]);

/**
 * Creates the `Gatehouse-Block` header for reads of data that blocks change. The response contains all changes up to
 * that block, and may contain changes of later blocks.
 */
function createBlockHeaders(chain: Pick<Chain, "head">): (method: ServedMethod) => readonly string[] {
  let cached: { readonly number: bigint; readonly headers: readonly string[] } | undefined;
  return ({ desc }) => {
    const number = chain.head()?.number;
    if (
      number === undefined ||
      !blockServices.has(desc.parent) ||
      desc.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS
    ) {
      return [];
    }
    if (cached?.number !== number) {
      cached = { number, headers: ["Gatehouse-Block", String(number)] };
    }
    return cached.headers;
  };
}

/**
 * Returns the concurrency limits, in total and for each address. With few descriptors, an address may have half of the
 * connections.
 *
 * @param maxConnections limit on connections by the descriptors of this process.
 * @param processes number of processes that serve the port. Each gets its part of the totals; the limits for an
 *   address are not divided.
 */
export function limitsOf(
  {
    config: { connectionsPerAddress, streamsPerAddress },
    memory,
    overload = defaultOverload,
  }: Pick<NodeCore, "config" | "memory" | "overload">,
  maxConnections: number,
  processes = 1,
): Required<Pick<EdgeSettings, "overload" | "connections" | "streams" | "bytes">> {
  const partOf = (total: number): number => Math.ceil(total / processes);
  return {
    bytes: memory.exchanges,
    overload: { ...overload, maxInFlight: partOf(overload.maxInFlight) },
    connections: {
      total: Math.min(partOf(defaultConnections.total), maxConnections),
      perAddress: Math.min(connectionsPerAddress || Infinity, Math.floor(maxConnections / 2)),
      backlog: memory.backlog,
    },
    streams: { total: partOf(defaultStreams.total), perAddress: streamsPerAddress || Infinity },
  };
}

/** Starts the traces if an endpoint is configured. Their library is loaded only then. */
export async function startTraces(
  { config, onShutdown }: Pick<NodeCore, "config" | "onShutdown">,
  { publicKey }: Pick<NodeKey, "publicKey">,
): Promise<Traces | undefined> {
  if (config.otlpEndpoint === undefined) {
    return undefined;
  }
  const { createTraces } = await loadOptional(
    "--otlp-endpoint",
    ["api", "core", "exporter-trace-otlp-http", "resources", "sdk-trace-base"]
      .map((name) => `@opentelemetry/${name}`)
      .join(" "),
    () => import("../../metrics/traces.js"),
  );
  const started = createTraces(config.otlpEndpoint, version, publicKey);
  onShutdown("the traces", () => started.stop());
  return started;
}
