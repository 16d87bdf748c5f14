/**
 * The composition root: configuration in, a running node out. Parts are made in boot order and handed to each other
 * here; nothing reaches for another part by itself.
 */
import { SubsystemStatus } from "../gen/gatehouse/health/v1/health_pb.js";
import { adoptGenesis, verifyStoredChain } from "./chain/genesis.js";
import type { Chain } from "./chain/chain.js";
import { createChainService, createConsensusService } from "./chain/service.js";
import { type ChainHead, type ChainStore, createChainStore } from "./chain/store.js";
import type { Config } from "./config.js";
import { openDatabase } from "./db/connect.js";
import { checkSchema, migrate } from "./db/migrate.js";
import { createEdge } from "./edge/gate.js";
import { createBoot } from "./health/boot.js";
import { createBoundedProbe } from "./health/bounded-probe.js";
import { messageOf, type ProcessErrors } from "./health/process-errors.js";
import { createHealthFeed } from "./health/feed.js";
import { createGrpcHealthService } from "./health/grpc-health.js";
import { createReadiness } from "./health/probes.js";
import { createHealthService } from "./health/service.js";
import { createTakeSnapshot } from "./health/snapshot.js";
import { createSubsystems, type SubsystemName, type Subsystems } from "./health/subsystems.js";
import { loadOrCreateNodeKey } from "./info/node-key.js";
import { createInfoService } from "./info/service.js";
import { bindPort, type BoundPort } from "./listen-with-drift.js";
import { createLogging, type Logger } from "./log.js";
import { createNodeAttestation } from "./node-attestation.js";
import { createNodeChain, sealIfAlone } from "./node-chain.js";
import { createPeerClient } from "./peers/client.js";
import { createMainLoop, type MainLoop } from "./peers/main-loop.js";
import { createPeerBook, readPeersFile } from "./peers/peer-book.js";
import { createRefreshPeers } from "./peers/refresh.js";
import { createInternalServer, createRpcServer } from "./rpc/rpc-server.js";
import { listInternalServices, listServices } from "./services.js";
import { StartError } from "./start-error.js";
import { createStorageService } from "./storage/service.js";
import { codename, version } from "./version.js";
import { createZkService } from "./zk/service.js";

/** A node that booted. */
export interface RunningNode {
  /** http://host:port of the RPC port, as reached from this machine. */
  readonly rpcUrl: string;
  /** 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  /** Bound port by subsystem name. */
  readonly ports: Readonly<Record<string, number>>;
  readonly dormant: boolean;
  readonly version: string;
  readonly versionName: string;
  /** Sentences that the operator should read. */
  readonly warnings: readonly string[];
  /** The registry of subsystems: whoever runs a subsystem reports its state here. */
  readonly subsystems: Subsystems;
  readonly mainLoop: MainLoop;
  /** The chain: whoever brings blocks hands them in here. */
  readonly chain: Chain;
  /** A block from 1 on, as it was signed. */
  readonly block: ChainStore["block"];
  readonly log: Logger;
  /** Finishes what is under way, for up to ten seconds, and closes everything. */
  stop(): Promise<void>;
}

/** How long requests under way may take to finish when the node stops. */
const drainMs = 10_000;
/** How long a peer may take to answer. */
const peerDeadlineMs = 2_000;

/** The boot steps, in order. The names of subsystems move those subsystems. */
const bootSteps = [
  "identity",
  "database",
  "genesis",
  "chain",
  "peers",
  "rpc",
  "metrics",
  "signaling",
  "mcp",
  "tlsnotary",
  "omni",
  "dtr",
  "l2ps",
  "main_loop",
] as const;

/**
 * Starts a node and resolves when it has booted.
 *
 * @param shared what several nodes in one process have in common.
 * @throws StartError when it cannot start.
 */
export async function startNode(
  config: Config,
  shared: { readonly processErrors: ProcessErrors },
): Promise<RunningNode> {
  const closers: (() => unknown)[] = [];
  const closeAll = async (): Promise<void> => {
    for (const close of closers.splice(0).reverse()) {
      await close();
    }
  };
  try {
    return await boot(config, shared.processErrors, (close) => closers.push(close), closeAll);
  } catch (error) {
    await closeAll();
    throw error instanceof StartError ? error : new StartError(messageOf(error), { cause: error });
  }
}

async function boot(
  config: Config,
  processErrors: ProcessErrors,
  onStop: (close: () => unknown) => void,
  stop: () => Promise<void>,
): Promise<RunningNode> {
  const { log, publicLines, diagnosticLines } = createLogging({ level: config.logLevel, json: config.json });
  const warnings: string[] = [];
  const warn = (subsystem: SubsystemName, message: string): void => {
    warnings.push(message);
    log.warn({ subsystem }, message);
  };
  const subsystems = createSubsystems(Date.now, (name, { status, lastError, extra }) => {
    const word = SubsystemStatus[status].toLowerCase();
    if (status === SubsystemStatus.FAILED) {
      log.error({ subsystem: name }, `${name} ${word}: ${lastError?.message ?? ""}`);
    } else {
      log[status === SubsystemStatus.READY ? "info" : "debug"](
        { subsystem: name },
        `${name} ${word}${extra === undefined ? "" : `: ${extra.reason}`}`,
      );
    }
  });
  const steps = createBoot(bootSteps, subsystems);
  const isReader = config.role === "reader";
  let stopping = false;

  const key = await steps.step("identity", () => loadOrCreateNodeKey(config.dataDir));

  const database = await steps.step("database", async () => {
    const opened = await openDatabase(config.databaseUrl);
    onStop(() => opened.close());
    await (isReader ? checkSchema(opened) : migrate(opened));
    return opened;
  });
  const chainStore = createChainStore(database);

  const genesis = await steps.step("genesis", () =>
    adoptGenesis(chainStore, isReader ? undefined : config.genesisFile),
  );
  const onWriteTrouble = (trouble: unknown): void => {
    if (trouble === undefined) {
      log.info({ subsystem: "chain" }, "The database takes writes again");
      subsystems.set("chain", { status: SubsystemStatus.READY });
    } else {
      const { code = "unknown error" } = trouble as NodeJS.ErrnoException;
      const message = `The database takes no writes (${code}).`;
      subsystems.set("chain", { status: SubsystemStatus.FAILED, error: { message, source: "database" } });
    }
  };
  const chainParts = {
    role: config.role,
    database,
    store: chainStore,
    genesis,
    head: await bootChain(),
    onWriteTrouble,
    log,
    onStop,
  };
  const { chain, programs, tree, nullifiers } = createNodeChain(chainParts);

  const peerEntries = await steps.step("peers", () =>
    config.peersFile === undefined ? [] : readPeersFile(config.peersFile),
  );
  const dormant = peerEntries.length === 0;
  const book = createPeerBook(peerEntries, () => genesis?.hash, Date.now);
  const peerClient = createPeerClient();
  onStop(() => peerClient.close());

  const mainLoop = createMainLoop({
    intervalMs: config.loopIntervalMs,
    tickDeadlineMs: 2 * peerDeadlineMs,
    tasks: [createRefreshPeers(book, peerClient, peerDeadlineMs)],
    nowMs: Date.now,
    onTaskError: (task, error) => log.error({ subsystem: "main_loop", task, err: error }, `Task ${task} failed`),
    onLife: (death) => {
      if (death === undefined) {
        subsystems.set("main_loop", { status: SubsystemStatus.READY });
      } else if (!stopping) {
        subsystems.set("main_loop", { status: SubsystemStatus.FAILED, error: { message: death, source: "main_loop" } });
      }
    },
  });

  const takeSnapshot = createTakeSnapshot({
    version,
    versionName: codename,
    uptimeS: () => process.uptime(),
    isDormant: () => dormant,
    isAccepting: () => {
      const highest = book.highestBlock();
      const head = chain.head();
      const isSynced = head !== undefined && (highest === undefined || head.number >= highest);
      return steps.state().complete && !stopping && !dormant && isSynced && !mainLoop.isDead();
    },
    boot: steps,
    subsystems,
    mainLoop,
    processErrors,
    pendingCount: createBoundedProbe({
      query: () => chainStore.pendingCount(),
      maxAgeMs: 900,
      timeoutMs: 1_000,
      nowMs: () => performance.now(),
      onChange: (problem) => {
        if (problem === undefined) {
          log.info({ subsystem: "chain" }, "The database answers again");
        } else {
          log.error({ subsystem: "chain", problem }, "The pending transactions cannot be counted");
        }
      },
    }),
  });

  const edge = createEdge({
    trustedProxies: config.trustedProxies,
    identityMode: config.identityMode,
    rateLimitPerMinute: config.rateLimitPerMinute,
    rateLimitExempt: config.rateLimitExempt,
    onAccess: (line) => log.info({ access: true, ...line }, "Answered"),
    onUntrustedForwarding: () =>
      warn(
        "rpc",
        "Requests are forwarded from this machine, but --trusted-proxies names no proxy: callers share its address.",
      ),
  });
  onStop(() => edge.stop());
  if (config.identityMode === "trusted-header") {
    warn(
      "rpc",
      "The identity header is believed without a signature: only a gateway that sets it may reach this node.",
    );
  }
  const readiness = createReadiness({ isMainLoopDead: () => mainLoop.isDead(), isStopping: () => stopping });
  const feed = createHealthFeed(takeSnapshot);
  let connectionString = "";
  const attestation = createNodeAttestation({
    config,
    subsystems,
    log,
    warn: (message) => warn("tlsnotary", message),
    onStop,
  });
  const services = listServices({
    health: createHealthService({ takeSnapshot, feed, isMainLoopDead: () => mainLoop.isDead(), readiness }),
    grpcHealth: createGrpcHealthService({
      takeSnapshot,
      feed,
      isReady: (snapshot) => Object.values(readiness(snapshot)).every((check) => check() === undefined),
    }),
    info: createInfoService({
      version,
      versionName: codename,
      publicKey: key.publicKey,
      connectionString: () => connectionString,
      peers: () => book.list(),
      publicLines,
      diagnosticLines,
      mcp: () => ({ enabled: false, running: false }),
      genesis: () => genesis?.text,
      rateLimit: () => edge.stats(),
    }),
    chain: createChainService(chain, chainStore),
    storage: createStorageService(programs),
    zk: createZkService({ tree, nullifiers }),
    attestation: config.tlsnotaryEnabled ? attestation.service : undefined,
  });
  const onInternalError = (error: unknown, requestId: string): void =>
    log.error({ subsystem: "rpc", requestId, err: error }, "A request failed");
  const server = createRpcServer({ services, gate: edge, onInternalError });
  const rpcPort = await steps.step("rpc", async () => {
    const bound = await bindPort(server, config, config.rpcPort, "--rpc-port");
    onStop(() => server.drain(drainMs));
    recordPort("rpc", bound);
    return bound.actual;
  });
  const rpcUrl = `http://${reachableHost(config.host)}:${rpcPort}`;
  connectionString = config.publicUrl ?? rpcUrl;

  const whyDormant = dormant ? "The node is dormant: it has no peers." : undefined;
  const leaveOut = (name: SubsystemName, reason: string, enabled: boolean): void => {
    subsystems.set(name, { enabled });
    steps.skip(name, reason);
  };
  leaveOut("metrics", notProvided, false);
  leaveOut("signaling", whyDormant ?? notProvided, false);
  leaveOut("mcp", whyDormant ?? notProvided, false);
  if (config.tlsnotaryEnabled && whyDormant === undefined) {
    await steps.tryStep("tlsnotary", () => attestation.start());
  } else {
    const reason = config.tlsnotaryEnabled ? whyDormant! : "TLSNOTARY_ENABLED is not true.";
    leaveOut("tlsnotary", reason, config.tlsnotaryEnabled);
  }
  const omniPort = await steps.step("omni", () => listenInternally());
  leaveOut("dtr", notProvided, false);
  leaveOut("l2ps", notProvided, false);
  sealIfAlone(chainParts, chain, key);
  if (whyDormant === undefined) {
    await steps.step("main_loop", () => mainLoop.start());
    onStop(() => mainLoop.stop("The node is shutting down."));
  } else {
    steps.skip("main_loop", whyDormant);
  }
  // First of all, so that watchers hear that the node takes no more traffic, and not of what is closed after that.
  onStop(() => feed.close());
  log.info({ public: true }, `Node ${version} "${codename}" is up${dormant ? ", dormant" : ""}`);

  return {
    rpcUrl,
    publicKey: key.publicKey,
    ports: { rpc: rpcPort, omni: omniPort },
    dormant,
    version,
    versionName: codename,
    warnings,
    subsystems,
    mainLoop,
    chain,
    block: (number) => chainStore.block(number),
    log,
    async stop() {
      if (!stopping) {
        stopping = true;
        log.info({ public: true }, "Node is shutting down");
        await stop();
      }
    },
  };

  /** The port between nodes: everything on it is signed, and nothing of it is reachable from the public one. */
  async function listenInternally(): Promise<number> {
    const gate = createEdge({
      trustedProxies: [],
      identityMode: "signed",
      rateLimitPerMinute: 0,
      rateLimitExempt: [],
      onAccess: () => undefined,
      onUntrustedForwarding: () => undefined,
    });
    onStop(() => gate.stop());
    const internal = createInternalServer({
      services: listInternalServices({ consensus: createConsensusService(chain) }),
      gate,
      onInternalError,
    });
    const bound = await bindPort(internal, config, config.omniPort, "--omni-port");
    onStop(() => internal.drain(drainMs));
    recordPort("omni", bound);
    return bound.actual;
  }

  /** Tells of a port in the registry, and of one that is not the one asked for. */
  function recordPort(name: SubsystemName, { requested, actual }: BoundPort): void {
    const isAny = requested === 0;
    subsystems.set(name, { port: actual, ...(!isAny && { requestedPort: requested }) });
    if (!isAny && actual !== requested) {
      warn(name, `Port ${requested} is taken; the node listens on ${actual} instead.`);
    }
  }

  /** Without a genesis there is no chain yet; with one that does not fit its hash the node runs, and says it fails. */
  async function bootChain(): Promise<ChainHead | undefined> {
    if (genesis === undefined) {
      steps.skip("chain", "There is no genesis block yet; start the node with --genesis FILE.");
      return undefined;
    }
    return await steps.tryStep("chain", () => verifyStoredChain(chainStore, genesis));
  }
}

const notProvided = "This version of Gatehouse does not provide it.";

/** The host under which a listener is reached from this machine, in a URL. */
function reachableHost(host: string): string {
  if (host === "::" || host === "0.0.0.0" || host === "") {
    return "127.0.0.1";
  }
  return host.includes(":") ? `[${host}]` : host;
}
