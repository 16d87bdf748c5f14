/** Workers of a node: the processes that serve its public port, and the functions that the node offers them. */
import { toBinary } from "@bufbuild/protobuf";
import { SignedHeadSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import type { Edge, EdgeStats } from "../../edge/edge.js";
import type { SharedSubsystem } from "../../health/shared-subsystem.js";
import type { RequestCounts } from "../../metrics/metrics.js";
import type { RpcListener } from "../../rpc/port/listen.js";
import type { ServedService } from "../../rpc/service.js";
import { createForwardHandlers } from "../../workers/forward.js";
import { createProcessPool, type PoolWorker, type ProcessPool } from "../../workers/pool.js";
import { createUsageSharing, shareEveryMs, type UsageMember } from "../../workers/usage.js";
import { countWorkers, type NodeCore } from "../lifecycle/core.js";
import type { NodeHistory } from "./history.js";
import type { PublicFacts } from "./public-facts.js";
import type { NodeHandlers, WorkerBooted, WorkerHandlers, WorkerStart, WorkerVitals } from "./worker-ipc.js";

/** Services and data for the workers. */
export interface WorkersDeps {
  readonly services: readonly ServedService[];
  readonly facts: PublicFacts;
  readonly history: NodeHistory;
  readonly chainHealth: SharedSubsystem;
}

/** State of the workers, for metrics. */
export interface WorkersState {
  readonly running: number;
  readonly configured: number;
  readonly restarts: number;
  /** Resource usage by the name of the worker. */
  readonly vitals: Readonly<Record<string, Pick<WorkerVitals, "residentBytes" | "cpuSeconds">>>;
}

export interface NodeWorkers {
  /** Returns the listener of the public port. Binding the port starts the workers. */
  listener(deps: WorkersDeps): RpcListener;
  /** Makes the workers serve all services, once the node has booted. */
  serve(key: Pick<NodeKey, "publicKey">): Promise<void>;
  state(): WorkersState;
  /** Adds the usage of all workers to that of this process. */
  addTo(own: EdgeStats): Promise<EdgeStats>;
  /** Returns the request counts of each running worker that responds in time. */
  requests(): Promise<RequestCounts[]>;
  /** Shares the usage of an edge of this process with the workers, so that limits apply across processes. */
  shareUsage(edge: Pick<Edge, "drainUsage" | "receiveUsage">): void;
}

/** Time in milliseconds that a worker may take for its response. */
const responseTimeoutMs = 500;

/** Creates the workers; undefined if the node's own process serves the public port. */
export function createNodeWorkers(core: NodeCore): NodeWorkers | undefined {
  const count = countWorkers(core.config);
  if (count === 0) {
    return undefined;
  }
  const { onShutdown } = core;
  const sharing = createUsageSharing();
  const vitals = new Map<number, WorkerVitals>();
  let pool: ProcessPool<WorkerHandlers> | undefined;
  let publicKey = "";
  const running = (): readonly PoolWorker<WorkerHandlers>[] => pool?.workers() ?? [];
  const shareTimer = setInterval(() => sharing.share(), shareEveryMs);
  onShutdown("the limits shared by workers", () => clearInterval(shareTimer));

  return {
    listener(deps) {
      pool = createNodePool(core, deps, { count, sharing, vitals, publicKey: () => publicKey });
      notifyWorkers(core, deps, running);
      return pool;
    },
    async serve(key) {
      publicKey = key.publicKey;
      await pool!.serve();
    },
    state: () => ({
      ...(pool?.state() ?? { running: 0, configured: count, restarts: 0 }),
      vitals: Object.fromEntries([...vitals].map(([name, reported]) => [String(name), reported])),
    }),
    async addTo(own) {
      return (await callAll(running(), ({ channel }) => channel.call("edgeStats", undefined))).reduce(add, own);
    },
    requests: () => callAll(running(), ({ channel }) => channel.call("requests", undefined)),
    shareUsage(edge) {
      const party: UsageMember = { receive: (usage) => edge.receiveUsage(usage) };
      sharing.join(party);
      const reportTimer = setInterval(() => sharing.report(party, edge.drainUsage()), shareEveryMs);
      onShutdown("the usage shared with workers", () => clearInterval(reportTimer));
    },
  };
}

/** State that the pool of workers shares with {@link createNodeWorkers}. */
interface Shared {
  readonly count: number;
  readonly sharing: ReturnType<typeof createUsageSharing>;
  readonly vitals: Map<number, WorkerVitals>;
  readonly publicKey: () => string;
}

function createNodePool(
  core: NodeCore,
  { services, facts: { chain, heads }, history, chainHealth }: WorkersDeps,
  { count, sharing, vitals, publicKey }: Shared,
): ProcessPool<WorkerHandlers> {
  const { config, log, subsystems, onInternalError } = core;
  const forwarding = createForwardHandlers(services);
  const parties = new Map<PoolWorker<WorkerHandlers>, UsageMember>();
  const handlersFor = (self: () => PoolWorker<WorkerHandlers>): NodeHandlers => ({
    ...forwarding,
    notifications: {
      usage(usage) {
        const party = parties.get(self());
        if (party !== undefined) {
          sharing.report(party, usage);
        }
      },
      vitals(reported) {
        vitals.set(self().name, reported);
        show();
      },
      log: ({ level, fields, message }) => log[level]({ ...fields, worker: self().name }, message),
      corruption: (message) => chainHealth.report(`stored data, read by worker ${self().name}`, message),
      uncaught: ({ kind, message }) => core.processErrors.count(kind, new Error(message)),
    },
  });
  const pool = createProcessPool<WorkerStart, WorkerBooted, WorkerHandlers>({
    ...{ count, log, handlersFor },
    module: new URL("../worker-process.js", import.meta.url),
    start: () => ({ config, overload: core.overload, stateHeadEveryMs: core.stateHeadEveryMs }),
    booted() {
      const head = chain.head();
      const stated = head && heads.latestSignedHead(head.hash);
      return {
        publicKey: publicKey(),
        hasChain: head !== undefined,
        headStatement: stated && toBinary(SignedHeadSchema, stated),
        history: history.history.points(),
      };
    },
    onJoin(worker) {
      const party = {
        receive: (usage: Parameters<UsageMember["receive"]>[0]) => worker.channel.notify("usage", usage),
      };
      parties.set(worker, party);
      sharing.join(party);
    },
    onLeave(worker) {
      sharing.leave(parties.get(worker)!);
      parties.delete(worker);
      vitals.delete(worker.name);
      chainHealth.report(`stored data, read by worker ${worker.name}`, undefined);
    },
    onState({ running }, problem) {
      // During the boot, the boot itself sets the status.
      if (core.progress.state().complete) {
        subsystems.set("rpc", { status: running === 0 ? SubsystemStatus.FAILED : SubsystemStatus.READY });
      }
      if (problem !== undefined) {
        subsystems.set("rpc", { error: { message: problem, source: "rpc" } });
      }
      show();
    },
    onInternalError: (error) => onInternalError(error, ""),
  });
  return {
    ...pool,
    async serve() {
      await pool.serve();
      // The boot step has ended by then, and has changed the status once more.
      setImmediate(show);
    },
  };

  /** Shows the number of workers, which each change of the status removes. */
  function show(): void {
    const workers = pool.state();
    const shown = subsystems.get("rpc").extra?.workers;
    if (shown?.running !== workers.running || shown.restarts !== workers.restarts) {
      subsystems.set("rpc", { extra: { workers } });
    }
  }
}

/** Forwards the events of the node that workers need. */
function notifyWorkers(
  { bus }: Pick<NodeCore, "bus">,
  { facts: { chain, heads } }: Pick<WorkersDeps, "facts">,
  running: () => readonly PoolWorker<WorkerHandlers>[],
): void {
  const notifyAll = (send: (channel: PoolWorker<WorkerHandlers>["channel"]) => void): void =>
    running().forEach(({ channel }) => send(channel));
  const notifyBlock = (): void => notifyAll((channel) => channel.notify("block", undefined));
  bus.on("blockApplied", notifyBlock);
  bus.on("headFound", notifyBlock);
  bus.on("headStated", () => {
    const head = chain.head();
    const stated = head && heads.latestSignedHead(head.hash);
    if (stated !== undefined) {
      const signed = toBinary(SignedHeadSchema, stated);
      notifyAll((channel) => channel.notify("headStated", signed));
    }
  });
  bus.on("transactionRejected", (rejection) => notifyAll((channel) => channel.notify("rejected", rejection)));
  bus.on("historyTaken", (point) => notifyAll((channel) => channel.notify("historyTaken", point)));
  bus.on("reloadRequested", () => notifyAll((channel) => channel.notify("reload", undefined)));
}

/**
 * Adds the usage of two processes. Both know nearly all addresses, because they share them, so the larger count is
 * used. Requests, streams, connections and bytes belong to one process, so they are summed.
 */
function add(a: EdgeStats, b: EdgeStats): EdgeStats {
  return {
    totalIps: Math.max(a.totalIps, b.totalIps),
    blockedIps: Math.max(a.blockedIps, b.blockedIps),
    activeRequests: a.activeRequests + b.activeRequests,
    openStreams: a.openStreams + b.openStreams,
    openConnections: a.openConnections + b.openConnections,
    reservedBytes: a.reservedBytes + b.reservedBytes,
  };
}

/** Calls all workers. Returns the results of those that respond in time. */
async function callAll<T>(
  workers: readonly PoolWorker<WorkerHandlers>[],
  call: (worker: PoolWorker<WorkerHandlers>) => Promise<T>,
): Promise<T[]> {
  const results = await Promise.all(workers.map((worker) => within(responseTimeoutMs, call(worker))));
  return results.filter((result) => result !== undefined) as T[];
}

/** Returns the outcome of the work; undefined if it fails or takes longer than `ms` milliseconds. */
async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, ms, undefined)));
  try {
    return await Promise.race([work, timeout]);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
