/**
 * Workers of a node: the processes that serve its public port, and the functions that the node and a worker offer each
 * other.
 */
import { toBinary } from "@bufbuild/protobuf";
import { setTimeout as sleep } from "node:timers/promises";
import { SignedHeadSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import type { Edge, EdgeStats, SharedUsage } from "../../edge/edge.js";
import type { ProcessErrors } from "../../health/process-errors.js";
import type { SharedSubsystem } from "../../health/subsystems.js";
import type { HistoryPoint } from "../../metrics/history.js";
import type { RequestCounts } from "../../metrics/metrics.js";
import type { ListenAddress, RpcListener } from "../../rpc/port/listen.js";
import type { ServedService } from "../../rpc/service.js";
import { createForwardHandlers, type Forwarding } from "../../workers/forward.js";
import { createProcessPool, type PoolWorker, type ProcessPool } from "../../workers/pool.js";
import { createUsageSharing, shareEveryMs, type UsageMember } from "../../workers/usage.js";
import { countWorkers, type NodeCore } from "../lifecycle/core.js";
import type { NodeHistory } from "./history.js";
import type { PublicFacts } from "./public-facts.js";

/** Data that a worker receives at its start. */
export type WorkerStart = Pick<NodeCore, "config" | "overload" | "stateHeadEveryMs">;

/** Data that a worker receives once the node has booted. */
export interface WorkerBooted {
  readonly publicKey: string;
  /** False if the node could not read its chain. The worker then reports nothing about the chain in the database. */
  readonly hasChain: boolean;
  /** Latest signed head of an authority, encoded as a SignedHead. */
  readonly headStatement: Uint8Array | undefined;
  readonly history: readonly HistoryPoint[];
}

/** Resource usage of a worker, reported once a second. */
interface WorkerVitals {
  readonly residentBytes: number;
  /** Processor time in seconds since the start of the worker. */
  readonly cpuSeconds: number;
  /** Limit in total at which the worker rejects requests; undefined if it rejects none. */
  readonly overload: string | undefined;
}

const workerProblems = ["stored data", "disk of the chain", "disk of the mempool"] as const;

type WorkerProblem = (typeof workerProblems)[number];

/** Functions of a node that a worker calls. */
export interface NodeHandlers extends Forwarding {
  readonly notifications: {
    usage(usage: SharedUsage): void;
    vitals(vitals: WorkerVitals): void;
    log(line: {
      readonly level: "debug" | "info" | "warn" | "error";
      readonly fields: object;
      readonly message: string;
    }): void;
    /** Reports a problem that the worker has with the database; without a message, its end. */
    problem(problem: { readonly subject: WorkerProblem; readonly message: string | undefined }): void;
    uncaught(error: { readonly kind: Parameters<ProcessErrors["count"]>[0]; readonly message: string }): void;
  };
}

/** Functions of a worker that its node calls. */
export interface WorkerHandlers {
  readonly calls: {
    start(options: { readonly start: WorkerStart; readonly address: ListenAddress }): Promise<void>;
    /** Makes all services available. */
    serve(booted: WorkerBooted): Promise<void>;
    /** Finishes requests in progress, for up to `graceMs`, and ends the process. */
    drain(graceMs: number): Promise<void>;
    edgeStats(none: undefined): EdgeStats;
    /** Returns the requests of the worker, counted by protocol, rpc and outcome. */
    requests(none: undefined): Promise<RequestCounts>;
  };
  readonly streams: Readonly<Record<string, never>>;
  readonly notifications: {
    usage(usage: SharedUsage): void;
    block(none: undefined): void;
    /** Passes on a new signed head of an authority, encoded as a SignedHead. */
    headStated(signed: Uint8Array): void;
    rejected(rejection: { readonly hash: string; readonly reason: string }): void;
    historyTaken(point: HistoryPoint): void;
    /** Requests that the worker reload files that may have changed. */
    reload(none: undefined): void;
  };
}

type Worker = PoolWorker<WorkerHandlers>;

interface WorkersDeps {
  readonly services: readonly ServedService[];
  readonly facts: PublicFacts;
  readonly history: NodeHistory;
  readonly chainHealth: SharedSubsystem;
}

/** Time in milliseconds that a worker may take for its response. */
const responseTimeoutMs = 500;

export type NodeWorkers = NonNullable<ReturnType<typeof createNodeWorkers>>;

/** Creates the workers; undefined if the node's own process serves the public port. */
export function createNodeWorkers(
  core: Pick<
    NodeCore,
    | ("bus" | "config" | "log" | "onInternalError" | "onShutdown")
    | ("overload" | "processErrors" | "progress" | "stateHeadEveryMs" | "subsystems")
  >,
) {
  const { bus, config, log, overload, onInternalError, onShutdown, stateHeadEveryMs, subsystems } = core;
  const count = countWorkers(config);
  if (count === 0) {
    return undefined;
  }
  const sharing = createUsageSharing();
  const members = new Map<Worker, UsageMember>();
  const vitals = new Map<number, WorkerVitals>();
  let pool: ProcessPool<WorkerHandlers> | undefined;
  let publicKey = "";
  const running = (): readonly Worker[] => pool?.workers() ?? [];
  const state = () => pool?.state() ?? { running: 0, configured: count, restarts: 0 };
  const shareTimer = setInterval(() => sharing.share(), shareEveryMs);
  onShutdown("the limits shared by workers", () => clearInterval(shareTimer));

  /** Shows the number of workers, which each change of the status removes. */
  function show(): void {
    const workers = state();
    const shown = subsystems.get("rpc").extra?.workers;
    if (shown?.running !== workers.running || shown.restarts !== workers.restarts) {
      subsystems.set("rpc", { extra: { workers } });
    }
  }

  function createPool({ services, facts, history, chainHealth }: WorkersDeps): ProcessPool<WorkerHandlers> {
    const forwarding = createForwardHandlers(services);
    const handlersFor = (self: () => Worker): NodeHandlers => ({
      ...forwarding,
      notifications: {
        usage(usage) {
          const member = members.get(self());
          if (member !== undefined) {
            sharing.report(member, usage);
          }
        },
        vitals(reported) {
          vitals.set(self().name, reported);
          show();
        },
        log: ({ level, fields, message }) => log[level]({ ...fields, worker: self().name }, message),
        problem: ({ subject, message }) => chainHealth.report(`${subject}, read by worker ${self().name}`, message),
        uncaught: ({ kind, message }) => core.processErrors.count(kind, new Error(message)),
      },
    });
    return createProcessPool<WorkerStart, WorkerBooted, WorkerHandlers>({
      ...{ count, log, handlersFor },
      module: new URL("../worker.js", import.meta.url),
      start: () => ({ config, overload, stateHeadEveryMs }),
      booted: () => ({
        publicKey,
        hasChain: facts.chain.head() !== undefined,
        headStatement: encodeLatestHead(facts),
        history: history.history.points(),
      }),
      onJoin(worker) {
        const member: UsageMember = { receive: (usage) => worker.channel.notify("usage", usage) };
        members.set(worker, member);
        sharing.join(member);
      },
      onLeave(worker) {
        sharing.leave(members.get(worker)!);
        members.delete(worker);
        vitals.delete(worker.name);
        for (const subject of workerProblems) {
          chainHealth.report(`${subject}, read by worker ${worker.name}`, undefined);
        }
      },
      onState({ running }, problem) {
        // During the boot, the boot itself sets the status.
        if (core.progress.state().complete) {
          subsystems.set("rpc", { status: running === 0 ? SubsystemStatus.FAILED : SubsystemStatus.READY });
        }
        if (problem !== undefined) {
          subsystems.set("rpc", { error: { message: problem, source: "rpc" } });
        } else if (running === count) {
          subsystems.set("rpc", { error: null });
        }
        show();
      },
      onInternalError: (error) => onInternalError(error, ""),
    });
  }

  /** Forwards the events of the node that workers need. */
  function forwardEvents(facts: PublicFacts): void {
    const notifyAll = (send: (channel: Worker["channel"]) => void): void =>
      running().forEach(({ channel }) => send(channel));
    const notifyBlock = (): void => notifyAll((channel) => channel.notify("block", undefined));
    bus.on("blockApplied", notifyBlock);
    bus.on("headFound", notifyBlock);
    bus.on("headStated", () => {
      const signed = encodeLatestHead(facts);
      if (signed !== undefined) {
        notifyAll((channel) => channel.notify("headStated", signed));
      }
    });
    bus.on("transactionRejected", (rejection) => notifyAll((channel) => channel.notify("rejected", rejection)));
    bus.on("historyTaken", (point) => notifyAll((channel) => channel.notify("historyTaken", point)));
    bus.on("reloadRequested", () => notifyAll((channel) => channel.notify("reload", undefined)));
  }

  return {
    /** Returns the listener of the public port. Binding the port starts the workers. */
    listener(deps: WorkersDeps): RpcListener {
      pool = createPool(deps);
      forwardEvents(deps.facts);
      return pool;
    },
    /** Makes the workers serve all services, once the node has booted. */
    async serve(key: Pick<NodeKey, "publicKey">): Promise<void> {
      publicKey = key.publicKey;
      await pool!.serve();
      // The boot step has ended by then, and has changed the status once more.
      setImmediate(show);
    },
    /** Returns the state of the workers for metrics, with their resource usage by name. */
    state: () => ({ ...state(), vitals: Object.fromEntries(vitals) }),
    /** Returns a limit at which a worker rejects requests; undefined if none does. */
    overload: () => [...vitals.values()].find(({ overload }) => overload !== undefined)?.overload,
    /** Adds the usage of all workers to that of this process. */
    addTo: async (own: EdgeStats) =>
      (await callAll(running(), ({ channel }) => channel.call("edgeStats", undefined))).reduce(add, own),
    /** Returns the request counts of each running worker that responds in time. */
    requests: () => callAll(running(), ({ channel }) => channel.call("requests", undefined)),
    /** Shares the usage of an edge of this process with the workers, so that limits apply across processes. */
    shareUsage(edge: Pick<Edge, "drainUsage" | "receiveUsage">): void {
      const member: UsageMember = { receive: (usage) => edge.receiveUsage(usage) };
      sharing.join(member);
      const reportTimer = setInterval(() => sharing.report(member, edge.drainUsage()), shareEveryMs);
      onShutdown("the usage shared with workers", () => clearInterval(reportTimer));
    },
  };
}

/** Encodes the latest signed head, if there is one. */
function encodeLatestHead({ chain, heads }: PublicFacts): Uint8Array | undefined {
  const head = chain.head();
  const stated = head && heads.latestSignedHead(head.hash);
  return stated && toBinary(SignedHeadSchema, stated);
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
    unansweredRequests: a.unansweredRequests + b.unansweredRequests,
    reservedBytes: a.reservedBytes + b.reservedBytes,
  };
}

/** Calls all workers. Returns the results of those that respond in time. */
async function callAll<T>(workers: readonly Worker[], call: (worker: Worker) => Promise<T>): Promise<T[]> {
  const results = await Promise.all(
    workers.map((worker) =>
      Promise.race([call(worker), sleep(responseTimeoutMs, undefined, { ref: false })]).catch(() => undefined),
    ),
  );
  return results.filter((result) => result !== undefined) as T[];
}
