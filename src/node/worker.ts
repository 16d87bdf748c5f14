/**
 * Entry module of a worker process, which serves the public port of a node. The worker reads the node's database over its
 * own connections, with its own caches, and follows the blocks there. It queries the node for data that is not in the
 * database. It waits for instructions from the node, and exits with the node.
 */
import { fromBinary } from "@bufbuild/protobuf";
import { AttestationService } from "../../gen/gatehouse/attestation/v1/attestation_pb.js";
import { type SignedHead, SignedHeadSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { errorMessage } from "../base/errors/error-message.js";
import { version } from "../base/version.js";
import { createChainStore } from "../chain/chain-store.js";
import { readStoredGenesis } from "../chain/blocks/genesis.js";
import type { HeadStatements } from "../chain/writer/head-statements.js";
import type { ChainStore } from "../chain/blocks/store.js";
import type { Edge } from "../edge/edge.js";
import { ProcessErrors, watchProcess } from "../health/process-errors.js";
import type { Logging } from "../base/logging/log.js";
import { createImmutableInfo } from "../info/service.js";
import { nodeMetrics } from "../metrics/table.js";
import type { Traces } from "../metrics/traces.js";
import type { ListenAddress } from "../rpc/port/listen.js";
import { RpcError } from "../rpc/errors.js";
import type { Implementation } from "../rpc/service.js";
import { openWorkerDatabase } from "./data/database.js";
import { type Forward, forwardService } from "../workers/forward.js";
import { shareEveryMs } from "../workers/usage.js";
import { type IpcChannel, openIpcChannel } from "../workers/ipc.js";
import type { PoolHandlers } from "../workers/pool.js";
import { createFollowedChain, describeDisk } from "./chain/chain.js";
import { monitorDisks } from "./data/disk-monitoring.js";
import { createChainServices } from "./serving/chain-services.js";
import { countWorkers, createNodeCore, type NodeCore } from "./lifecycle/core.js";
import { monitorStore } from "./chain/corruption-monitoring.js";
import { limitsOf, createPublicEdge, startTraces } from "./serving/edge.js";
import { type State, stateIn } from "./chain/transaction-executor.js";
import { createNodeEvents } from "./serving/event-service.js";
import { startHeadSigner } from "./chain/head-signer.js";
import { untilDatabaseResponds } from "./lifecycle/database-wait.js";
import { createNodeHistory } from "./serving/history.js";
import { createSnapshotSyncStatus } from "./chain/snapshot-sync-status.js";
import { createPublicServer, drainedOnce } from "./serving/listeners.js";
import { createPublicFacts } from "./serving/public-facts.js";
import { createDataServices } from "./serving/data-services.js";
import { type EarlyImplementations, type LaterImplementations, listServices } from "./serving/services.js";
import { createNodeState } from "./chain/state.js";
import { openTls } from "./serving/tls.js";
import type { NodeHandlers, WorkerBooted, WorkerHandlers, WorkerStart } from "./serving/workers.js";

/** Worker that listens on the public port, with the functions that the node calls. */
type RunningWorker = Omit<WorkerHandlers["calls"], "start"> & WorkerHandlers["notifications"];

/**
 * Age limit of a connection in milliseconds. Without a limit, clients that stay connected would stay with their first
 * workers, even while other workers are idle.
 */
const connectionAgeMs = 10 * 60_000;
/** Interval in milliseconds of the reports of this process's own use of resources. */
const vitalsEveryMs = 1_000;

/**
 * Binds the port, and resolves when the worker listens. Services that need the database are available once the node has
 * booted.
 *
 * @throws StartError
 */
async function startWorker(
  start: WorkerStart,
  address: ListenAddress,
  channel: IpcChannel<NodeHandlers>,
): Promise<RunningWorker> {
  const core = createWorkerCore(start, channel);
  const { bus, shutdownHooks, lifecycle, onShutdown, config } = core;
  const tls = await openTls(core);
  const facts = createPublicFacts(core);
  const requests = config.metricsEnabled
    ? (await import("../metrics/metrics.js")).createRequestCounter(nodeMetrics)
    : undefined;
  let traces: Traces | undefined;
  const limits = limitsOf(core, core.connections.public, countWorkers(config));
  const edge = createPublicEdge(core, { facts, requests, traces: () => traces }, limits);
  const forward: Forward = {
    unary: (call, signal) => channel.call("rpc", call, signal),
    stream: (call, signal) => channel.stream("rpc", call, signal),
  };
  const early = createForwardedServices(core, forward);
  const { services, open } = listServices(core, early);
  const history = createNodeHistory(core);
  const server = drainedOnce(createPublicServer(core, { services, edge, tls, facts, history }, connectionAgeMs));
  await server.listen(address);
  onShutdown("the listener", () => server.drain(lifecycle.drainLeftMs()));
  reportToNode(core, edge, channel);
  let receiveHead: (signed: Uint8Array) => void = () => undefined;

  return {
    async serve(booted) {
      traces = await startTraces(core, booted);
      booted.history.forEach((point) => history.history.add(point));
      const read = await readNodeData(core, booted);
      receiveHead = acceptHeads(core, read.heads, booted.headStatement);
      facts.set(read);
      open(createWorkerServices(core, read, booted, early, forward));
      onShutdown("the listener", () => server.drain(lifecycle.drainLeftMs()));
      onShutdown("the event subscriptions", () => read.events.close());
    },
    async drain(graceMs) {
      lifecycle.stop(graceMs);
      await shutdownHooks.run();
    },
    edgeStats: () => edge.stats(),
    requests: async () => (await requests?.counts()) ?? [],
    usage: (usage) => edge.receiveUsage(usage),
    block: () => bus.emit("blockReported", undefined),
    headStated: (signed) => receiveHead(signed),
    rejected: (rejection) => bus.emit("transactionRejected", rejection),
    historyTaken: (point) => history.history.add(point),
    reload: () => bus.emit("reloadRequested", undefined),
  };
}

/** Opens the node's database, and follows the blocks there. */
async function readNodeData(core: NodeCore, { hasChain }: WorkerBooted) {
  const database = await untilDatabaseResponds(core, () => openWorkerDatabase(core.config));
  core.onShutdown("the database", () => database.close());
  monitorDisks(core, database);
  const stored: ChainStore<State> = createChainStore(database, stateIn, undefined);
  const store = monitorStore(stored, core.corruption);
  const genesis = await readStoredGenesis(store);
  // If the node could not read its chain, the worker reports nothing about the chain either.
  const head = hasChain ? await store.head() : undefined;
  const followed = hasChain ? store : { ...store, head: () => Promise.resolve(undefined) };
  const syncStatus = createSnapshotSyncStatus(hasChain && head === undefined);
  const { chain, data } = createFollowedChain(core, { database, store: followed, head, syncStatus });
  const heads = startHeadSigner(core, { chain, genesis });
  const events = createNodeEvents(core, { store, chain, heads, readable: data.readable });
  const stateService = createNodeState(core, { database, store, chain, heads });
  return { genesis, store, chain, data, heads, events, stateService };
}

function createWorkerCore(
  { config, overload, stateHeadEveryMs }: WorkerStart,
  channel: Pick<IpcChannel<NodeHandlers>, "notify">,
): NodeCore {
  const processErrors = new ProcessErrors();
  processErrors.count = (kind, error) =>
    channel.notify("uncaught", { kind, message: error instanceof Error ? error.message : String(error) });
  const logging = createWorkerLog(config.logLevel, channel);
  const core = createNodeCore(
    { config, overload, stateHeadEveryMs, processErrors, wake: () => Promise.resolve() },
    0,
    logging,
  );
  watchProcess(processErrors, core.log);
  core.bus.on("corruptionChanged", ({ message }) => channel.notify("problem", { subject: "stored data", message }));
  core.bus.on("diskChanged", ({ part, problem }) =>
    channel.notify("problem", { subject: `disk of the ${part}`, message: problem && describeDisk(problem) }),
  );
  // The node has already shown these warnings to the operator.
  return { ...core, warn: (subsystem, message) => core.log.debug({ subsystem }, message) };
}

/** Creates a log that sends its lines to the node, which writes them with its own. */
function createWorkerLog(logLevel: string, channel: Pick<IpcChannel<NodeHandlers>, "notify">): Logging {
  const isDebugging = logLevel === "debug" || logLevel === "trace";
  const write =
    (level: "debug" | "info" | "warn" | "error") =>
    (fields: object, message: string): void =>
      channel.notify("log", { level, fields: withPlainErrors(fields), message });
  return {
    log: {
      debug: isDebugging ? write("debug") : () => undefined,
      ...{ info: write("info"), warn: write("warn"), error: write("error") },
    },
    ...{ publicLines: () => [], diagnosticLines: () => [], lost: () => 0 },
  };
}

/** Converts errors in log fields to plain objects, because the IPC channel would drop their own properties. */
function withPlainErrors(fields: object): object {
  const plain = Object.entries(fields).map(([name, value]: [string, unknown]) => {
    if (!(value instanceof Error)) {
      return [name, value];
    }
    const { code } = value as NodeJS.ErrnoException;
    return [name, { type: value.name, message: value.message, stack: value.stack, ...(code && { code }) }];
  });
  return Object.fromEntries(plain) as object;
}

/**
 * Creates the function that accepts signed heads of the latest block. A signed head that arrives before its block is
 * retained until the block is found.
 */
function acceptHeads(
  { bus }: Pick<NodeCore, "bus">,
  heads: Pick<HeadStatements, "accept">,
  first: Uint8Array | undefined,
): (signed: Uint8Array) => void {
  let pending: SignedHead | undefined;
  function tryToAccept(): void {
    if (pending !== undefined) {
      try {
        heads.accept(pending);
        pending = undefined;
      } catch {
        // The signed head is not about the latest block of this worker. The next block may match.
      }
    }
  }
  const receive = (signed: Uint8Array): void => {
    pending = fromBinary(SignedHeadSchema, signed);
    tryToAccept();
  };
  bus.on("headFound", tryToAccept);
  if (first !== undefined) {
    receive(first);
  }
  return receive;
}

/** Creates the services that the node handles for a worker. They are available from the start. */
function createForwardedServices(core: Pick<NodeCore, "config">, forward: Forward): EarlyImplementations {
  return {
    health: forwardService(HealthService, forward, true),
    grpcHealth: forwardService(Health, forward, true),
    info: forwardService(InfoService, forward, true),
    attestation: core.config.tlsnotaryEnabled ? forwardService(AttestationService, forward) : undefined,
  };
}

/**
 * Creates the services that are available once the node has booted. The worker reads blocks and state itself. The node
 * handles health, peers, logs and new transactions.
 */
function createWorkerServices(
  core: Pick<NodeCore, "memory">,
  read: Awaited<ReturnType<typeof readNodeData>>,
  { publicKey }: WorkerBooted,
  early: EarlyImplementations,
  forward: Forward,
): LaterImplementations {
  const { genesis, store, chain, data, heads, events } = read;
  const chainServices = createChainServices({
    chain: {
      head: () => chain.head(),
      hasGenesis: genesis !== undefined,
      submit: () =>
        Promise.reject(
          new RpcError("STATE_NOT_READY", "Only the node's own process accepts transactions, not a worker."),
        ),
    },
    heads,
    store,
    readable: data.readable,
    readershipBytes: core.memory.readershipBytes,
  });
  return {
    info: {
      ...(early.info as Implementation<typeof InfoService>),
      ...createImmutableInfo({ version, publicKey, genesis: () => genesis?.text }),
    },
    chain: {
      ...chainServices.anyCaller,
      submitTransaction: forwardService(ChainService, forward).submitTransaction,
    },
    // The node runs this check when it receives the forwarded transaction.
    chainBodyChecks: {},
    ...createDataServices({ chain, data, store, view: store }),
    state: read.stateService,
    event: events.service,
  };
}

/** Periodically reports the usage of this process by clients, and its own use of resources, to the node. */
function reportToNode(
  { onShutdown }: Pick<NodeCore, "onShutdown">,
  edge: Edge,
  channel: IpcChannel<NodeHandlers>,
): void {
  const usageTimer = setInterval(() => {
    const usage = edge.drainUsage();
    if (usage.usages.length + usage.charges.length + usage.banned.length > 0) {
      channel.notify("usage", usage);
    }
  }, shareEveryMs);
  const reportVitals = (): void => {
    const { user, system } = process.cpuUsage();
    const cpuSeconds = (user + system) / 1e6;
    channel.notify("vitals", { residentBytes: process.memoryUsage.rss(), cpuSeconds, overload: edge.overload() });
  };
  reportVitals();
  const vitalsTimer = setInterval(reportVitals, vitalsEveryMs);
  onShutdown("the reports to the node", () => {
    clearInterval(usageTimer);
    clearInterval(vitalsTimer);
  });
}

// A terminal sends these signals to every process of the node. The node decides when its workers stop.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => undefined);
}
// A worker is useless without its node.
process.on("disconnect", () => process.exit(1));

let running: RunningWorker | undefined;

/**
 * Runs work. Converts an error to an RpcError, because only those keep their message on the way to the node. Only the
 * operator sees that message.
 */
async function withRpcErrors(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw new RpcError("INTERNAL_ERROR", errorMessage(error));
  }
}

const handlers: WorkerHandlers = {
  calls: {
    start: ({ start, address }) =>
      withRpcErrors(async () => {
        running = await startWorker(start, address, channel);
      }),
    serve: (booted) => withRpcErrors(() => running!.serve(booted)),
    async drain(graceMs) {
      await running?.drain(graceMs);
      process.exit(0);
    },
    edgeStats: () => running!.edgeStats(undefined),
    requests: async () => (await running?.requests(undefined)) ?? [],
  },
  streams: {},
  // Notifications before the worker listens have no use, and are dropped.
  notifications: {
    usage: (usage) => running?.usage(usage),
    block: () => running?.block(undefined),
    headStated: (signed) => running?.headStated(signed),
    rejected: (rejection) => running?.rejected(rejection),
    historyTaken: (point) => running?.historyTaken(point),
    reload: () => running?.reload(undefined),
  },
};

const channel = openIpcChannel<NodeHandlers & PoolHandlers>(
  {
    send: (message) => process.connected && process.send!(message, undefined, undefined, () => undefined),
    onMessage: (listener) => void process.on("message", listener),
  },
  handlers,
  (error) => channel.notify("log", { level: "error", fields: {}, message: errorMessage(error) }),
);
channel.notify("up", undefined);
