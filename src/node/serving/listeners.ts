/** Ports of a node: binds them, reports their addresses, and drains them. */
import type { NodeKey } from "../../base/crypto/node-key.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import { createEdge, type Edge } from "../../edge/edge.js";
import type { SubsystemName } from "../../health/subsystems.js";
import type { Metrics } from "../../metrics/metrics.js";
import { createMetricsPage } from "../../metrics/page.js";
import { localUrl } from "../../config/local-url.js";
import { parseConnectionString } from "../../peers/address-book/endpoint.js";
import { createExplorerPages, createStatusPages } from "../../rpc/http/html-pages.js";
import { handleNodeCall } from "../../rpc/node-call/node-call.js";
import { bindPort, type RpcListener } from "../../rpc/port/listen.js";
import { createHttp1Port } from "../../rpc/port/port.js";
import { createRequestIds } from "../../rpc/exchange/exchange.js";
import { createUnrestrictedGate } from "../../edge/unrestricted-gate.js";
import type { NodeApplication } from "../../express/application.js";
import {
  type ApplicationDeps,
  createGrpcOnlyServer,
  createMcpPort,
  createRpcServer,
  type RpcServer,
} from "../../rpc/server/rpc-server.js";
import type { ServedService } from "../../rpc/service.js";
import { version } from "../../base/version.js";
import type { NodeCore } from "../lifecycle/core.js";
import { limitsOf } from "./edge.js";
import type { NodeHistory } from "./history.js";
import type { PublicFacts } from "./public-facts.js";
import { createLatestPage } from "./latest-page.js";
import { createStateTags } from "./state-tags.js";
import type { NodeTls } from "./tls.js";

const info = { title: "Gatehouse", version };
/** Resources of the MCP port, by the rpc that returns each of them. */
const resources = { "health.getHealth": "Health", "info.getInfo": "Node", "info.getGenesis": "Genesis" };

interface PublicPortDeps {
  readonly services: readonly ServedService[];
  readonly edge: Edge;
  readonly facts: PublicFacts;
  readonly history: NodeHistory;
  readonly tls: NodeTls;
}

/**
 * Creates the server of the public port without listening.
 *
 * @param connectionAgeMs maximum age of a connection in milliseconds; undefined sets no limit.
 */
export function createPublicServer(
  core: Pick<NodeCore, "config" | "memory" | "onInternalError">,
  { services, edge, history, tls, facts }: PublicPortDeps,
  connectionAgeMs?: number,
): RpcServer<NodeApplication> {
  const pages = {
    ...createStatusPages(history),
    ...createExplorerPages(),
    ...createLatestPage({ services, chain: facts.chain }),
  };
  const server = createRpcServer(
    {
      ...{ services, gate: edge, onInternalError: core.onInternalError, connectionAgeMs },
      idleTimeoutMs: core.config.idleTimeoutMs,
      ...{ stateTags: createStateTags(facts), maxCacheBytes: core.memory.responseBytes },
      ...{ nodeCall: handleNodeCall, info, pages },
    },
    { tls: tls.credentials(), edge: core.config.edge, buildApplication: loadApplication },
  );
  tls.onRenewed((credentials) => server.renewTls?.(credentials));
  return server;
}

/** Loads Express with the first request that needs it: most nodes only serve compiled routes. */
async function loadApplication(deps: ApplicationDeps): Promise<NodeApplication> {
  const { buildApplication } = await import("../../express/application.js");
  return buildApplication(deps);
}

/** Binds the public port, and sets the addresses under which clients reach the node. */
export async function openRpcPort(
  core: Pick<
    NodeCore,
    "addresses" | "config" | "lifecycle" | "memory" | "onInternalError" | "onShutdown" | "subsystems" | "warn"
  >,
  deps: PublicPortDeps,
  workers: RpcListener | undefined,
) {
  const { config, addresses } = core;
  // With workers, this process only serves the requests that servers of other applications pass to it, if any.
  let own: RpcServer<NodeApplication> | undefined;
  const ownServer = (): RpcServer<NodeApplication> => (own ??= createPublicServer(core, deps));
  const applicationServer = (): RpcServer<NodeApplication> => {
    if (own === undefined) {
      drainOnStop(core, "the handed-over requests", ownServer());
    }
    return ownServer();
  };
  const listener = drainedOnce(workers ?? ownServer());
  const rpcPort = await openPort(core, "rpc", listener, config.rpcPort, "--rpc-port");
  addresses.rpcUrl = localUrl({ ...config, rpcPort });
  addresses.connectionString = parseConnectionString(config.publicUrl ?? addresses.rpcUrl);
  return {
    rpcPort,
    /** Returns the application that handles requests accepted by other servers as the port would. */
    application: () => applicationServer().application(),
    /**
     * Adds a shutdown hook that drains the port before all parts created so far stop, because requests in progress need
     * them.
     */
    drainFirst: () => drainOnStop(core, "the rpc listener", listener),
  };
}

/** Wraps a listener so that further drains wait for the first one. */
export function drainedOnce(listener: RpcListener): RpcListener {
  let drained: Promise<void> | undefined;
  return { ...listener, drain: (graceMs) => (drained ??= listener.drain(graceMs)) };
}

export async function openMetricsPort(
  core: Pick<NodeCore, "config" | "connections" | "lifecycle" | "log" | "onShutdown" | "subsystems" | "warn">,
  metrics: Metrics,
): Promise<void> {
  const page = createMetricsPage(metrics, (error) =>
    core.log.error({ subsystem: "metrics", err: error }, "The metrics could not be collected"),
  );
  const port = createHttp1Port(
    { gate: createUnrestrictedGate(undefined, core.connections.small), nextRequestId: createRequestIds() },
    ({ request, response }) => page(request, response),
  );
  await openPort(core, "metrics", port, core.config.metricsPort, "--metrics-port");
}

/** Binds the port of the MCP server, which offers tools to assistants. */
export async function openMcpPort(
  core: Pick<NodeCore, "config" | "lifecycle" | "onInternalError" | "onShutdown" | "subsystems" | "warn">,
  { services, edge }: Pick<PublicPortDeps, "services" | "edge">,
): Promise<void> {
  const { config, onInternalError } = core;
  const server = await createMcpPort({ services, gate: edge, onInternalError, info, resources });
  await openPort(core, "mcp", server, config.mcpPort, "--mcp-port");
}

/** Binds the port for other nodes. With TLS, both ends of a connection prove their keys. */
export async function openInternalPort(
  core: Pick<
    NodeCore,
    | ("config" | "connections" | "lifecycle" | "memory" | "onInternalError")
    | ("onShutdown" | "overload" | "subsystems" | "warn")
  >,
  services: readonly ServedService[],
  key: NodeKey,
  genesis: Genesis | undefined,
): Promise<number> {
  const { config, onInternalError, onShutdown } = core;
  const gate = createEdge({
    trustedProxies: [],
    identityMode: "signed",
    identityForm: config.identityForm,
    network: genesis?.hash,
    rateLimitPerMinute: config.rateLimitPerMinute,
    rateLimitExempt: config.rateLimitExempt,
    ...limitsOf(core, core.connections.internal),
    onAccess: () => undefined,
    onUntrustedForwarding: () => undefined,
  });
  onShutdown("the limits between nodes", () => gate.stop());
  const server = createGrpcOnlyServer(
    { services, gate, onInternalError },
    config.omniTls ? key.tlsCredentials() : undefined,
  );
  return await openPort(core, "omni", server, config.omniPort, "--omni-port");
}

/** Binds the listener of a subsystem and shows its port. Warns if the port is not the requested one. */
async function openPort(
  core: Pick<NodeCore, "config" | "lifecycle" | "onShutdown" | "subsystems" | "warn">,
  name: SubsystemName,
  listener: RpcListener,
  port: number,
  option: string,
): Promise<number> {
  const { config, subsystems, warn } = core;
  const { requested, actual } = await bindPort(listener, config, port, option);
  drainOnStop(core, `the ${name} listener`, listener);
  subsystems.set(name, { port: actual });
  if (requested !== 0 && actual !== requested) {
    warn(name, `Port ${requested} is taken; the node listens on ${actual} instead.`);
  }
  return actual;
}

/** Adds a shutdown hook that drains a listener in the time that is left. */
export function drainOnStop(
  { lifecycle, onShutdown }: Pick<NodeCore, "lifecycle" | "onShutdown">,
  name: string,
  listener: RpcListener,
): void {
  onShutdown(name, () => listener.drain(lifecycle.drainLeftMs()));
}
