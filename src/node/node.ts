/**
 * The composition root: configuration in, a running node out. Parts are made in boot order and handed to each other
 * here; nothing reaches for another part by itself. It is long because it is the one place where all of them meet; what
 * belongs together is composed beside it, in node-*.ts.
 */
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { adoptGenesis, verifyStoredChain } from "../chain/genesis.js";
import type { Chain } from "../chain/chain.js";
import { createChainService } from "../chain/service.js";
import { type ChainHead, createChainStore } from "../chain/store.js";
import type { Config } from "../config/config.js";
import { openDatabase } from "../db/connect.js";
import { checkSchema, migrate } from "../db/migrate.js";
import { createEdge } from "../edge/edge.js";
import { createBoot } from "../health/boot.js";
import { createBoundedProbe } from "../health/bounded-probe.js";
import { type ProcessErrors } from "../health/process-errors.js";
import { messageOf } from "../base/message-of.js";
import { createHealthFeed } from "../health/feed.js";
import { createGrpcHealthService } from "../health/grpc-health.js";
import { createReadiness } from "../health/probes.js";
import { createHealthService } from "../health/service.js";
import { createTakeSnapshot } from "../health/snapshot.js";
import { shareSubsystem } from "../health/shared-subsystem.js";
import { createSubsystems, type SubsystemName, type Subsystems } from "../health/subsystems.js";
import { loadOrCreateNodeKey } from "../base/node-key.js";
import { createInfoService } from "../info/service.js";
import { bindPort, type BoundPort } from "../rpc/port/bind-port.js";
import { createLogging, type Logger } from "../base/log.js";
import { createMetrics, type NodeFacts } from "../metrics/metrics.js";
import type { Traces } from "../metrics/traces.js";
import { createNodeAttestation } from "./attestation.js";
import { createNodeChain, type NodeChainParts, sealIfAlone } from "./chain.js";
import { createNodeControl } from "./control.js";
import { type DoorParts, serveMcp, serveMetrics } from "./listeners.js";
import { createNodeNetwork } from "./network.js";
import { olderCalls } from "../rpc/node-call/node-call.js";
import type { MainLoop } from "../peers/main-loop.js";
import type { SyncProgress } from "../peers/sync.js";
import type { RpcListener } from "../rpc/port/listen.js";
import { createGrpcOnlyServer, createRpcServer } from "../rpc/server/rpc-server.js";
import { listInternalServices, listServices } from "./services.js";
import { readTlsFiles } from "../config/tls-files.js";
import { StartError } from "../base/start-error.js";
import { createStatusPage } from "../rpc/http/status-page.js";
import { createStorageService } from "../storage/service.js";
import { codename, version } from "../base/version.js";
import { createZkService } from "../zk/service.js";

/** A node that booted. */
export interface RunningNode {
  /** Scheme, host and port of the RPC port, as reached from this machine. */
  readonly rpcUrl: string;
  /** 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  /** Bound port by subsystem name. */
  readonly ports: Readonly<Record<string, number>>;
  /** Whether it knew no peers when it had booted. */
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
  /** How far it is behind its peers, while it catches up. */
  syncProgress(): SyncProgress | undefined;
  readonly log: Logger;
  /** Finishes what is under way, for up to ten seconds, and closes everything. */
  stop(): Promise<void>;
}

/** How long requests under way may take to finish when the node stops. */
const drainMs = 10_000;

/** The boot steps, in order. The names of subsystems move those subsystems. */
const bootSteps = [
  "identity",
  "database",
  "genesis",
  "chain",
  "peers",
  "control",
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
  let isClosed = false;
  const closeAll = async (): Promise<void> => {
    isClosed = true;
    for (const close of closers.splice(0).reverse()) {
      await close();
    }
  };
  const onStop = (close: () => unknown): void => {
    if (isClosed) {
      // It was begun while the node stopped.
      void close();
    } else {
      closers.push(close);
    }
  };
  try {
    return await boot(config, shared.processErrors, onStop, closeAll);
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
        `${name} ${word}${extra?.reason === undefined ? "" : `: ${extra.reason}`}`,
      );
    }
  });
  const steps = createBoot(bootSteps, subsystems);
  const isReader = config.role === "reader";
  let stopping = false;
  let stopByMs = Infinity;
  const isStopping = (): boolean => stopping;
  /** All listeners share the time: they drain one after the other. */
  const drain = (listener: RpcListener): Promise<void> =>
    listener.drain(Math.max(0, Math.min(drainMs, stopByMs - Date.now())));

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
  const sharedChain = shareSubsystem(subsystems, "chain");
  const onWriteTrouble = (trouble: unknown): void => {
    if (trouble === undefined) {
      log.info({ subsystem: "chain" }, "The database takes writes again");
      sharedChain.tell("database", undefined);
    } else {
      const { code = "unknown error" } = trouble as NodeJS.ErrnoException;
      sharedChain.tell("database", `The database takes no writes (${code}).`);
    }
  };
  const head = await bootChain();
  if (genesis !== undefined && head === undefined) {
    sharedChain.tell("boot", subsystems.get("chain").lastError?.message);
  }
  const chainParts: NodeChainParts = {
    role: config.role,
    database,
    store: chainStore,
    genesis,
    head,
    onWriteTrouble,
    onBlock: () => network.onBlock(),
    log,
    onStop,
  };
  const { chain, programs, tree, nullifiers } = createNodeChain(chainParts);

  const addresses = { connectionString: "", omniUrl: "" };
  let dormant = false;
  let isBooted = false;
  const isAccepting = (): boolean =>
    steps.state().complete && !stopping && network.isSynced() && !network.mainLoop.isDead();
  const network = await steps.step("peers", () =>
    createNodeNetwork({
      config,
      database,
      store: chainStore,
      chain,
      genesis,
      key,
      subsystems,
      log,
      connectionString: () => addresses.connectionString,
      omniUrl: () => addresses.omniUrl,
      isAccepting,
      isStopping,
      warn: (message) => warn("omni", message),
      hasConsensus: () => control.hasConsensus(),
      onVerified: () => void wake(),
      onStop,
    }),
  );
  dormant = network.book.isEmpty();
  const { mainLoop } = network;

  const takeSnapshot = createTakeSnapshot({
    version,
    versionName: codename,
    uptimeS: () => process.uptime(),
    isDormant: () => dormant,
    isAccepting,
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

  const metrics = config.metricsEnabled
    ? createMetrics({ version, versionName: codename, takeSnapshot, facts: takeFacts })
    : undefined;
  const traces = await startTraces();
  const edge = createEdge({
    trustedProxies: config.trustedProxies,
    identityMode: config.identityMode,
    rateLimitPerMinute: config.rateLimitPerMinute,
    rateLimitExempt: config.rateLimitExempt,
    onAccess: (line) => log.info({ access: true, ...line }, "Answered"),
    ...((metrics ?? traces) !== undefined && {
      onSettled(request, arrival) {
        metrics?.count(request);
        traces?.record({ ...request, header: (name) => arrival.header(name) });
      },
    }),
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
  const readiness = createReadiness({ isMainLoopDead: () => mainLoop.isDead(), isStopping });
  const feed = createHealthFeed(takeSnapshot);
  const attestation = createNodeAttestation({
    config,
    subsystems,
    log,
    warn: (message) => warn("tlsnotary", message),
    onStop,
  });
  const chainService = createChainService({ head: () => chain.head(), submit: network.submit }, chainStore);
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
      connectionString: () => addresses.connectionString,
      peers: () => network.book.list(),
      publicLines,
      diagnosticLines,
      mcp: () => ({
        enabled: config.mcpEnabled,
        running: subsystems.get("mcp").status === SubsystemStatus.READY,
      }),
      genesis: () => genesis?.text,
      rateLimit: () => edge.stats(),
    }),
    chain: chainService,
    storage: createStorageService(programs),
    zk: createZkService({ tree, nullifiers }),
    attestation: config.tlsnotaryEnabled ? attestation.service : undefined,
  });
  const info = { title: "Gatehouse", version };
  const onInternalError = (error: unknown, requestId: string): void =>
    log.error({ subsystem: "rpc", requestId, err: error }, "A request failed");
  const control = createNodeControl({
    config,
    network,
    subsystems,
    sharedChain,
    chain,
    onPeerAdded: wake,
    log,
    onInternalError,
    drain,
    onStop,
  });
  const controlPort = await steps.step("control", () => control.listen());

  const rpcPort = await steps.step("rpc", async () => {
    const server = createRpcServer(
      { services, gate: edge, onInternalError, older: olderCalls, info, pages: { "/status": createStatusPage() } },
      await readTlsFiles(config),
    );
    const bound = await bindPort(server, config, config.rpcPort, "--rpc-port");
    onStop(() => drain(server));
    recordPort("rpc", bound);
    return bound.actual;
  });
  const rpcUrl = `${config.tlsCertFile === undefined ? "http" : "https"}://${reachableHost(config.host)}:${rpcPort}`;
  addresses.connectionString = config.publicUrl ?? rpcUrl;

  const whyDormant = dormant ? "The node is dormant: it has no peers." : undefined;
  const leaveOut = (name: SubsystemName, reason: string, enabled: boolean): void => {
    subsystems.set(name, { enabled });
    steps.skip(name, reason);
  };
  const sleepers: (() => Promise<unknown>)[] = [];
  /** Takes a step; a dormant node leaves it out, and takes it when it wakes. */
  const whenAwake = async (name: SubsystemName, run: () => unknown, take = steps.tryStep): Promise<void> => {
    if (whyDormant === undefined) {
      await take(name, run);
    } else {
      steps.skip(name, whyDormant);
      sleepers.push(() => steps.makeUp(name, run));
    }
  };
  const doorOf = (name: SubsystemName): DoorParts => ({
    ...{ config, log, drain, onStop },
    onBound: (bound) => recordPort(name, bound),
  });
  if (metrics === undefined) {
    leaveOut("metrics", "--metrics-enabled is not set.", false);
  } else {
    await steps.tryStep("metrics", () => serveMetrics(doorOf("metrics"), metrics));
  }
  leaveOut("signaling", whyDormant ?? notReported, false);
  if (config.mcpEnabled) {
    await whenAwake("mcp", () => serveMcp(doorOf("mcp"), { services, gate: edge, onInternalError, info }));
  } else {
    leaveOut("mcp", "--mcp-enabled is not set.", false);
  }
  if (config.tlsnotaryEnabled) {
    await whenAwake("tlsnotary", () => attestation.start());
  } else {
    leaveOut("tlsnotary", "TLSNOTARY_ENABLED is not true.", false);
  }
  const omniPort = await steps.step("omni", () => listenInternally());
  const scheme = config.omniTls ? "https" : "http";
  addresses.omniUrl = network.nameEndpoint(
    config.omniUrl ?? `${scheme}://${new URL(addresses.connectionString).hostname}:${omniPort}`,
  );
  await whenAwake("dtr", () => undefined);
  leaveOut("l2ps", notReported, false);
  sealIfAlone(chainParts, chain, key, network.isSynced);
  await whenAwake("main_loop", () => network.start(), steps.step);
  // First of all, so that watchers hear that the node takes no more traffic, and not of what is closed after that.
  onStop(() => feed.close());
  isBooted = true;
  void wake();
  log.info({ public: true }, `Node ${version} "${codename}" is up${dormant ? ", dormant" : ""}`);

  return {
    rpcUrl,
    publicKey: key.publicKey,
    ports: { rpc: rpcPort, omni: omniPort, ...(controlPort !== undefined && { control: controlPort }) },
    dormant,
    version,
    versionName: codename,
    warnings,
    subsystems,
    mainLoop,
    chain,
    syncProgress: () => network.syncProgress(),
    log,
    async stop() {
      if (!stopping) {
        stopping = true;
        stopByMs = Date.now() + drainMs;
        log.info({ public: true }, "Node is shutting down");
        await stop();
      }
    },
  };

  /** The libraries of traces are loaded where somebody wants them. */
  async function startTraces(): Promise<Traces | undefined> {
    if (config.otlpEndpoint === undefined) {
      return undefined;
    }
    const { createTraces } = await import("../metrics/traces.js");
    const started = createTraces({ endpoint: config.otlpEndpoint, version, publicKey: key.publicKey });
    onStop(() => started.stop());
    return started;
  }

  /** What metrics tell beside the health. */
  async function takeFacts(): Promise<NodeFacts> {
    const { totalIps: _, blockedIps, activeRequests } = edge.stats();
    const { leafCount } = await tree.root();
    return {
      block: numberOf(chain.head()?.number),
      peerBlock: numberOf(network.peerBlock()),
      peers: network.countPeers(),
      leaves: leafCount,
      programs: await programs.createdCount(),
      requests: { active: activeRequests, limitedAddresses: blockedIps },
    };
  }

  /** Leaves dormancy: takes the boot steps that were left out. */
  async function wake(): Promise<void> {
    if (!dormant || !isBooted || stopping || network.book.isEmpty()) {
      return;
    }
    dormant = false;
    log.info({ public: true }, "The node has a peer and leaves dormancy");
    for (const name of ["signaling", "l2ps"] as const) {
      if (subsystems.get(name).status === SubsystemStatus.SKIPPED) {
        subsystems.set(name, { extra: { reason: notReported } });
      }
    }
    for (const takeStep of sleepers) {
      // It may be told to stop meanwhile.
      if (isStopping()) {
        return;
      }
      await takeStep();
    }
    log.info({ public: true }, "The node is awake");
  }

  /** The port between nodes: both ends of a connection prove who they are. */
  async function listenInternally(): Promise<number> {
    const gate = createEdge({
      trustedProxies: [],
      identityMode: "signed",
      rateLimitPerMinute: config.rateLimitPerMinute,
      rateLimitExempt: config.rateLimitExempt,
      onAccess: () => undefined,
      onUntrustedForwarding: () => undefined,
    });
    onStop(() => gate.stop());
    const internal = createGrpcOnlyServer(
      { services: listInternalServices({ peer: network.service, chain: chainService }), gate, onInternalError },
      config.omniTls ? key.tlsCredentials() : undefined,
    );
    const bound = await bindPort(internal, config, config.omniPort, "--omni-port");
    onStop(() => drain(internal));
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

const notReported = "Another process runs it, and none has reported it to the control service.";

/** The host under which a listener is reached from this machine, in a URL. */
function reachableHost(host: string): string {
  if (host === "::" || host === "0.0.0.0" || host === "") {
    return "127.0.0.1";
  }
  return host.includes(":") ? `[${host}]` : host;
}

function numberOf(count: bigint | undefined): number | undefined {
  return count === undefined ? undefined : Number(count);
}
