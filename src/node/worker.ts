/**
 * A process that serves the public port of a node. It reads the node's database over connections of its own, with caches
 * of its own, and follows the blocks in it; what the node knows and the database does not, it asks the node for.
 */
import { fromBinary } from "@bufbuild/protobuf";
import { AttestationService } from "../../gen/gatehouse/attestation/v1/attestation_pb.js";
import { type SignedHead, SignedHeadSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { version } from "../base/version.js";
import { createChainStore } from "../chain/chain-store.js";
import { readStoredGenesis, type Genesis } from "../chain/genesis.js";
import type { HeadStatements } from "../chain/head-statements.js";
import type { ChainStore } from "../chain/store.js";
import type { Edge } from "../edge/edge.js";
import { createProcessErrors, watchProcess } from "../health/process-errors.js";
import type { Logging } from "../base/log.js";
import { createLastingInfo } from "../info/service.js";
import { createHistory } from "../metrics/history.js";
import { nodeMetrics } from "../metrics/table.js";
import type { ListenAddress } from "../rpc/port/listen.js";
import { Failure } from "../rpc/errors.js";
import type { ServedService } from "../rpc/service.js";
import { createSearchService } from "../search/service.js";
import { createStorageService } from "../storage/service.js";
import { createZkService } from "../zk/service.js";
import { openDatabase } from "../db/open.js";
import { type Forward, forwardService } from "../workers/forward.js";
import { shareEveryMs } from "../workers/usage.js";
import type { Wire } from "../workers/wire.js";
import { createFollowedChain, type NodeChain } from "./chain.js";
import { createChainServices } from "./chain-services.js";
import { createNodeCore, type NodeCore } from "./core.js";
import { watchStore } from "./damage.js";
import { boundsOf, createPublicEdge, startTraces } from "./edge.js";
import { type State, stateIn } from "./effects.js";
import { createNodeEvents } from "./event-service.js";
import { keepHeads } from "./heads.js";
import { historyEveryMs } from "./history.js";
import { createJoining } from "./joining.js";
import { createPublicServer } from "./listeners.js";
import { createProgramHistory } from "./program-history.js";
import { createFinders } from "./search.js";
import { listServices } from "./services.js";
import { createNodeState } from "./state.js";
import { openTls } from "./tls.js";
import { countWorkers } from "./worker-count.js";
import type { NodeSide, WorkerSide, WorkerStart } from "./worker-sides.js";

/** A worker that serves. */
export interface RunningWorker {
  readonly side: Omit<WorkerSide["calls"], "start"> & WorkerSide["tells"];
}

/**
 * How old a connection gets. Callers that stay connected would all stay with the workers that they began with, whichever
 * of them have nothing to do.
 */
const connectionAgeMs = 10 * 60_000;
const vitalsEveryMs = 1_000;

/**
 * Starts to serve, and resolves when it does.
 *
 * @throws StartError, DatabaseError
 */
export async function startWorker(
  start: WorkerStart,
  address: ListenAddress,
  wire: Wire<NodeSide>,
): Promise<RunningWorker> {
  const core = createWorkerCore(start, wire);
  const { bus, stops, lifecycle, onStop, config } = core;
  const tls = await openTls(core);
  const database = await openDatabase(config.databaseUrl);
  onStop("the database", () => database.close());
  const stored: ChainStore<State> = createChainStore(database, stateIn, undefined);
  const store = watchStore(stored, core.damage);
  const genesis = await readStoredGenesis(store);
  // Where the node could not read its chain, nothing is told of it here either.
  const head = start.hasChain ? await store.head() : undefined;
  const followed = start.hasChain ? store : { ...store, head: () => Promise.resolve(undefined) };
  const joining = createJoining(start.hasChain && head === undefined);
  const data = createFollowedChain(core, { database, store: followed, head, joining });
  const heads = keepHeads(core, { chain: data.chain, genesis });
  const hearHead = takeHeads(core, heads, start.headStatement);

  const requests = config.metricsEnabled
    ? (await import("../metrics/metrics.js")).createRequestCounter(nodeMetrics)
    : undefined;
  const traces = await startTraces(core, { publicKey: start.publicKey });
  const edge = createPublicEdge(
    core,
    { genesis, chain: data.chain, requests, traces },
    boundsOf(core, countWorkers(config)),
  );
  const events = createNodeEvents(core, { store, chain: data.chain, heads, readable: data.readable });
  const services = createWorkerServices(core, {
    ...{ start, genesis, store, data, heads, events: events.service, forward: forwardOver(wire) },
    stateService: createNodeState(core, { database, store, chain: data.chain, heads }),
  });
  const history = createHistory();
  start.history.forEach((point) => history.add(point));
  const server = createPublicServer(
    core,
    {
      ...{ services, edge, tls, chain: data.chain, heads, genesis },
      history: { history, everyMs: historyEveryMs, database: database.engineName },
    },
    connectionAgeMs,
  );
  await server.listen(address);
  onStop("the listener", () => server.drain(lifecycle.drainLeftMs()));
  tellNode(core, edge, wire);
  onStop("those who watch", () => events.close());

  return {
    side: {
      async drain(graceMs) {
        lifecycle.stop(graceMs);
        await stops.run();
      },
      edgeStats: () => edge.stats(),
      requests: async () => (await requests?.counts()) ?? [],
      usage: (usage) => edge.hearUsage(usage),
      block: () => bus.emit("blockTold", undefined),
      headStated: hearHead,
      rejected: (rejection) => bus.emit("transactionRejected", rejection),
      historyTaken: (point) => history.add(point),
      reload: () => bus.emit("reloadAsked", undefined),
    },
  };
}

/** A core that logs by its node. */
function createWorkerCore(
  { config, overload, stateHeadEveryMs }: WorkerStart,
  wire: Pick<Wire<NodeSide>, "tell">,
): NodeCore {
  const own = createProcessErrors();
  const processErrors = {
    ...own,
    count(kind: Parameters<typeof own.count>[0], error: unknown): void {
      wire.tell("uncaught", { kind, message: error instanceof Error ? error.message : String(error) });
    },
  };
  const logging = createWorkerLog(config.logLevel, wire);
  const core = createNodeCore(
    { config, overload, stateHeadEveryMs, processErrors, wake: () => Promise.resolve() },
    0,
    logging,
  );
  watchProcess(processErrors, core.log);
  core.bus.on("damageChanged", ({ sentence }) => wire.tell("damage", sentence));
  // What the operator should read, the node has told already.
  return { ...core, warn: (subsystem, message) => core.log.debug({ subsystem }, message) };
}

/** Lines that the node writes, with its own. */
function createWorkerLog(logLevel: string, wire: Pick<Wire<NodeSide>, "tell">): Logging {
  const isDebugging = logLevel === "debug" || logLevel === "trace";
  const write =
    (level: "debug" | "info" | "warn" | "error") =>
    (fields: object, message: string): void => {
      if (level !== "debug" || isDebugging) {
        wire.tell("log", { level, fields: withPlainErrors(fields), message });
      }
    };
  return {
    log: { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") },
    ...{ publicLines: () => [], diagnosticLines: () => [], lost: () => 0 },
  };
}

/** Errors as they are logged: as such they would lose what is theirs on the way. */
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

/** Statements about the newest block: one that comes before its block does is taken with that. */
function takeHeads(
  { bus }: Pick<NodeCore, "bus">,
  heads: Pick<HeadStatements, "take">,
  first: Uint8Array | undefined,
): (signed: Uint8Array) => void {
  let waiting: SignedHead | undefined;
  function tryToTake(): void {
    if (waiting !== undefined) {
      try {
        heads.take(waiting);
        waiting = undefined;
      } catch {
        // It is about another block than the newest one here: the next one may be it.
      }
    }
  }
  const hear = (signed: Uint8Array): void => {
    waiting = fromBinary(SignedHeadSchema, signed);
    tryToTake();
  };
  bus.on("headFound", tryToTake);
  if (first !== undefined) {
    hear(first);
  }
  return hear;
}

function forwardOver(wire: Wire<NodeSide>): Forward {
  return {
    unary: (call, signal) => wire.call("rpc", call, signal),
    stream: (call, signal) => wire.stream("rpc", call, signal),
  };
}

interface WorkerServicesParts {
  readonly start: WorkerStart;
  readonly genesis: Genesis | undefined;
  readonly store: ChainStore;
  readonly data: NodeChain;
  readonly heads: HeadStatements;
  readonly events: Parameters<typeof listServices>[0]["event"];
  readonly stateService: Parameters<typeof listServices>[0]["state"];
  readonly forward: Forward;
}

/** Blocks and state are read here; the node is asked for its health, for whom it knows and what it logs, and to take in. */
function createWorkerServices(core: NodeCore, parts: WorkerServicesParts): ServedService[] {
  const { start, genesis, store, data, heads, forward } = parts;
  const chainServices = createChainServices({
    chain: { head: () => data.chain.head(), submit: () => Promise.reject(notHere()) },
    heads,
    store,
    readable: data.readable,
    mayFollow: () => false,
    readershipBytes: core.memory.readershipBytes,
  });
  return listServices({
    health: forwardService(HealthService, forward, true),
    grpcHealth: forwardService(Health, forward, true),
    info: {
      ...forwardService(InfoService, forward, true),
      ...createLastingInfo({ version, publicKey: start.publicKey, genesis: () => genesis?.text }),
    },
    chain: {
      ...chainServices.everybody,
      submitTransaction: forwardService(ChainService, forward).submitTransaction,
    },
    // The node refuses it before it reads it.
    chainBodyChecks: {},
    storage: createStorageService(data.programs, createProgramHistory(store)),
    zk: createZkService({ tree: data.tree, nullifiers: data.nullifiers }),
    state: parts.stateService,
    search: createSearchService(createFinders({ ...data, store })),
    event: parts.events,
    attestation: core.config.tlsnotaryEnabled ? forwardService(AttestationService, forward) : undefined,
  });
}

function notHere(): Failure {
  return new Failure("STATE_NOT_READY", "The node takes transactions, and no worker of it.");
}

/** Tells the node what callers do here, and how this process is. */
function tellNode({ onStop }: NodeCore, edge: Edge, wire: Wire<NodeSide>): void {
  const shares = setInterval(() => {
    const usage = edge.takeUsage();
    if (usage.places.length + usage.charges.length + usage.shutOut.length > 0) {
      wire.tell("usage", usage);
    }
  }, shareEveryMs);
  const tellVitals = (): void => {
    const { user, system } = process.cpuUsage();
    const cpuSeconds = (user + system) / 1e6;
    wire.tell("vitals", { residentBytes: process.memoryUsage.rss(), cpuSeconds });
  };
  tellVitals();
  const looks = setInterval(tellVitals, vitalsEveryMs);
  onStop("what is told to the node", () => {
    clearInterval(shares);
    clearInterval(looks);
  });
}
