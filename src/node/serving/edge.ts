/** The gate of the public port, and what is told of each request that passed it: access log, metrics, traces. */
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { StorageService } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { ZkService } from "../../../gen/gatehouse/zk/v1/zk_pb.js";
import { createErrorThrottle } from "../../base/logging/error-throttle.js";
import { version } from "../../base/version.js";
import type { Chain } from "../../chain/chain.js";
import { defaultConnections } from "../../edge/connection-limit.js";
import { createEdge, type Edge, type EdgeSettings, type EdgeStats } from "../../edge/edge.js";
import { defaultOverload } from "../../edge/overload.js";
import { defaultStreams } from "../../edge/stream-limit.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import type { Metrics, RequestCounter } from "../../metrics/metrics.js";
import { nodeMetrics } from "../../metrics/table.js";
import type { Traces } from "../../metrics/traces.js";
import type { ServedMethod } from "../../rpc/service.js";
import type { NodeChain } from "../chain/chain.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { NodeHealth } from "./health.js";
import type { NodeNetwork } from "../network/network.js";
import { createBlockWaits } from "./block-waits.js";
import type { PublicFacts } from "./public-facts.js";
import type { NodeTls } from "./tls.js";
import type { DataVerifier } from "../data/data-verifier.js";
import { countWorkers } from "../lifecycle/worker-count.js";
import type { NodeWorkers } from "./workers.js";

/** What it is made of beside the core. */
export interface NodeEdgeDeps {
  readonly facts: PublicFacts;
  readonly health: NodeHealth;
  readonly tls: NodeTls;
  readonly workers: NodeWorkers | undefined;
}

/** What requests are told of besides the log, once the node has booted. */
export interface ObservedDeps extends Omit<NodeChain, "written" | "forgetAll" | "readable"> {
  readonly key: NodeKey;
  readonly network: NodeNetwork;
  readonly verifier: DataVerifier | undefined;
}

/** The edge, and the metrics where they are served. */
export interface NodeEdge {
  readonly edge: Edge;
  /** Of this process and of all that serve for it. */
  readonly edgeStats: () => EdgeStats | Promise<EdgeStats>;
  readonly metrics: Metrics | undefined;
  /** Has metrics read from these parts, and starts traces. */
  observe(deps: ObservedDeps): Promise<void>;
}

export async function createNodeEdge(core: NodeCore, deps: NodeEdgeDeps): Promise<NodeEdge> {
  const { config, log, warn } = core;
  const { workers } = deps;
  let observed: ObservedDeps | undefined;
  let traces: Traces | undefined;
  const edgeStats = () => workers?.addTo(edge.stats()) ?? edge.stats();
  const unread = createErrorThrottle({
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
          // Their port is bound after the boot has come to the chain.
          return { ...deps, ...observed!, edge: { stats: () => stats }, logLines: core.logLines, health };
        },
        (metric, error) => unread.failed(error, { metric }),
        () => workers?.requests() ?? Promise.resolve([]),
      )
    : undefined;
  const edge = createPublicEdge(core, { ...deps, requests: metrics, traces: () => traces }, boundsOf(core));
  workers?.shareUsage(edge);
  if (config.identityMode === "trusted-header") {
    warn(
      "rpc",
      "The identity header is believed without a signature: only a gateway that sets it may reach this node.",
    );
  }
  return {
    ...{ edge, edgeStats, metrics },
    async observe(given) {
      observed = given;
      traces = await startTraces(core, given.key);
    },
  };
}

/** What the gate of the public port is made of, whichever process serves it. */
export interface PublicEdgeDeps {
  readonly facts: PublicFacts;
  /** Undefined where nobody counts them, as for traces. */
  readonly requests: Pick<RequestCounter, "count"> | undefined;
  /** Undefined until they have started. */
  readonly traces: () => Traces | undefined;
}

/** Builds that gate. */
export function createPublicEdge(
  core: NodeCore,
  { facts, requests, traces }: PublicEdgeDeps,
  bounds: ReturnType<typeof boundsOf>,
): Edge {
  const { config, log, warn, onShutdown: onStop } = core;
  const edge = createEdge({
    trustedProxies: config.trustedProxies,
    identityMode: config.identityMode,
    identityForm: config.identityForm,
    get network() {
      return facts.genesis()?.hash;
    },
    rateLimitPerMinute: config.rateLimitPerMinute,
    rateLimitExempt: config.rateLimitExempt,
    ...bounds,
    isShared: countWorkers(config) > 0,
    headersOf: tellBlock(facts.chain),
    untilBlock: createBlockWaits(core, facts.chain),
    onAccess: (line) => log.info({ access: true, ...line }, "Answered"),
    ...((requests ?? config.otlpEndpoint) !== undefined && {
      onSettled(request, arrival) {
        requests?.count(request);
        traces()?.record({ ...request, header: (name) => arrival.header(name) });
      },
    }),
    onShutOut: (address) =>
      log.warn({ subsystem: "rpc", address }, "An address is shut out for 10 s: it sends nothing but harm"),
    onUntrustedForwarding: () =>
      warn(
        "rpc",
        "Requests are forwarded from this machine, but --trusted-proxies names no proxy: callers share its address.",
      ),
  });
  onStop("the edge", () => edge.stop());
  return edge;
}

/** Whose answers are made of what blocks change. */
const ofBlocks: ReadonlySet<object> = new Set([ChainService, StorageService, ZkService]);

/**
 * Tells with each read of such data by which block it is: nothing of an earlier one is in the answer, and something of a
 * later one may be.
 */
function tellBlock(chain: Pick<Chain, "head">): (method: ServedMethod) => readonly string[] {
  let told: { readonly number: bigint; readonly headers: readonly string[] } | undefined;
  return ({ desc }) => {
    const number = chain.head()?.number;
    if (
      number === undefined ||
      !ofBlocks.has(desc.parent) ||
      desc.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS
    ) {
      return [];
    }
    if (told?.number !== number) {
      told = { number, headers: ["Gatehouse-Block", String(number)] };
    }
    return told.headers;
  };
}

/**
 * What there may be at a time, in all and of one address.
 *
 * @param processes how many serve: each has its part of all, and an address has what it has anywhere.
 */
export function boundsOf(
  { config: { connectionsPerAddress, streamsPerAddress }, memory, overload = defaultOverload }: NodeCore,
  processes = 1,
): Required<Pick<EdgeSettings, "overload" | "connections" | "streams" | "bytes">> {
  const partOf = (total: number): number => Math.ceil(total / processes);
  return {
    bytes: memory.exchanges,
    overload: { ...overload, maxInFlight: partOf(overload.maxInFlight) },
    connections: { total: partOf(defaultConnections.total), perAddress: connectionsPerAddress || Infinity },
    streams: { total: partOf(defaultStreams.total), perAddress: streamsPerAddress || Infinity },
  };
}

/** The libraries of traces are loaded where somebody wants them, as that of metrics is. */
export async function startTraces(
  { config, onShutdown: onStop }: NodeCore,
  { publicKey }: Pick<NodeKey, "publicKey">,
): Promise<Traces | undefined> {
  if (config.otlpEndpoint === undefined) {
    return undefined;
  }
  const { createTraces } = await import("../../metrics/traces.js");
  const started = createTraces({ endpoint: config.otlpEndpoint, version, publicKey });
  onStop("the traces", () => started.stop());
  return started;
}
