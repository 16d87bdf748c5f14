/** Control service of a node, for its other processes and its operator. */
import { randomBytes, timingSafeEqual } from "node:crypto";
import { chmod, readFile, rm } from "node:fs/promises";
import { connect } from "node:net";
import { ControlService, PeerOrigin } from "../../../gen/gatehouse/control/v1/control_pb.js";
import { HealthService, SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { createControl, type Report, type ShownEntry } from "../../control/service.js";
import { RpcError } from "../../rpc/errors.js";
import { type ReportableName, reportableNames } from "../../health/subsystems.js";
import { controlTokenPath } from "../../config/data-dir-files.js";
import { errorMessage } from "../../base/errors/error-message.js";
import { makeFilePrivate, privateFileMode, withPrivateUmask, writeNewFile } from "../../base/files/private-files.js";
import type { NodeCore } from "../lifecycle/core.js";
import { drainOnStop } from "./listeners.js";
import type { NodeNetwork } from "../network/network.js";
import { type BookEntry, remarkOn } from "../../peers/address-book/peer.js";
import { createUnrestrictedGate } from "../../edge/unrestricted-gate.js";
import type { Gate } from "../../rpc/gate.js";
import type { RpcListener } from "../../rpc/port/listen.js";
import { ChainService, ConsensusService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { createGrpcOnlyServer } from "../../rpc/server/rpc-server.js";
import { type Implementation, serve, type ServedService } from "../../rpc/service.js";
import { withReflection } from "./services.js";
import { StartError } from "../../base/errors/start-error.js";

/** Services for the operator, in addition to the control service. */
interface OperatorServices {
  readonly consensus: Implementation<typeof ConsensusService>;
  readonly chain: Implementation<typeof ChainService>;
  readonly health: Implementation<typeof HealthService>;
}

/**
 * Listens on the control socket, and on the control port if one is configured.
 *
 * @returns the bound port; undefined without a control port.
 * @throws StartError
 */
export async function openControl(
  core: Pick<
    NodeCore,
    "bus" | "config" | "lifecycle" | "log" | "onInternalError" | "onShutdown" | "subsystems" | "wake"
  >,
  network: Pick<NodeNetwork, "book" | "addPeer" | "removePeer">,
  { consensus, chain, health }: OperatorServices,
): Promise<number | undefined> {
  const { log, onShutdown, wake } = core;
  const control = createControl({
    nowMs: Date.now,
    reportableNames,
    onReport: (name, report) => applyReport(core, name, report),
    async addPeer(endpoint, identity) {
      if (core.config.role === "standby") {
        throw new RpcError(
          "STATE_NOT_READY",
          "This node is a standby and has no peers; add the peer to the node that writes.",
        );
      }
      const added = await network.addPeer(endpoint, identity);
      log.info({ subsystem: "omni" }, `The operator added the peer ${added}`);
      // The node leaves dormancy before the response, so that the operator's next request finds an active node.
      await wake();
      return showEntry(network.book.get(added)!);
    },
    removePeer: (endpoint) => network.removePeer(endpoint),
    listBook: () => network.book.entries().map(showEntry),
  });
  onShutdown("the control service", () => control.stop());
  const services = withReflection([
    serve(ControlService, control.service),
    serve(ConsensusService, consensus),
    serve(ChainService, chain),
    serve(HealthService, health),
  ]);
  return await listenForControl(core, services);
}

/**
 * Called when another process reports the state of a subsystem. A report of the consensus process is about its part in
 * the chain.
 */
function applyReport(
  { bus, subsystems }: Pick<NodeCore, "bus" | "subsystems">,
  name: ReportableName,
  report: Report,
): void {
  const { status, port, requestedPort, error } = report;
  const hasFailed = status === SubsystemStatus.FAILED;
  if (name === "chain") {
    bus.emit("consensusReported", {
      isReady: status === SubsystemStatus.READY,
      error: hasFailed ? error : undefined,
    });
    return;
  }
  subsystems.set(name, {
    enabled: true,
    status,
    ...(port !== undefined && { port }),
    ...(requestedPort !== undefined && { requestedPort }),
    ...(hasFailed && error !== undefined && { error: { message: error, source: "report" } }),
  });
}

const origins = {
  file: PeerOrigin.FILE,
  operator: PeerOrigin.OPERATOR,
  handshake: PeerOrigin.HANDSHAKE,
  gossip: PeerOrigin.GOSSIP,
} as const;

function showEntry(entry: BookEntry): ShownEntry {
  return {
    endpoint: entry.endpoint,
    origin: origins[entry.origin],
    identity: entry.identity ?? entry.expectedIdentity ?? "",
    connectionString: entry.connectionString ?? "",
    verified: entry.verifiedMs !== undefined,
    online: entry.online,
    block: entry.head?.number,
    lastSeenMs: entry.lastSeenMs === undefined ? undefined : BigInt(entry.lastSeenMs),
    failures: entry.failures,
    nextTryMs: entry.nextTryMs === 0 ? undefined : BigInt(Math.round(entry.nextTryMs)),
    message: remarkOn(entry),
  };
}

/** Limit in bytes on a socket path that every system accepts. Some systems silently truncate longer paths. */
const maxSocketPathBytes = 103;

/** Binds the control socket and the control port. Returns the port; undefined without one. */
async function listenForControl(
  core: Pick<NodeCore, "config" | "lifecycle" | "onInternalError" | "onShutdown">,
  services: readonly ServedService[],
): Promise<number | undefined> {
  const { config, onInternalError } = core;
  const { controlSocket, controlPort, dataDir } = config;
  if (Buffer.byteLength(controlSocket) > maxSocketPathBytes) {
    throw new StartError(
      `The path ${controlSocket} is too long for a socket; give a shorter one with --control-socket.`,
    );
  }
  await clearSocket(controlSocket);
  // Only the node's own user can open the socket, so it needs no token.
  const overSocket = createGrpcOnlyServer({ services, gate: createUnrestrictedGate(), onInternalError });
  await bind(overSocket, { path: controlSocket }, controlSocket);
  drainOnStop(core, "the control socket", overSocket);
  await chmod(controlSocket, privateFileMode);
  if (controlPort === undefined) {
    return undefined;
  }
  const gate = createTokenGate(await loadOrCreateToken(controlTokenPath(dataDir)));
  const overPort = createGrpcOnlyServer({ services, gate, onInternalError });
  const port = await bind(overPort, { host: "127.0.0.1", port: controlPort }, `port ${controlPort}`);
  drainOnStop(core, "the control port", overPort);
  return port;
}

async function bind(
  listener: RpcListener,
  address: Parameters<RpcListener["listen"]>[0],
  name: string,
): Promise<number> {
  try {
    return await withPrivateUmask(() => listener.listen(address));
  } catch (error) {
    throw new StartError(`The control service cannot listen on ${name}: ${errorMessage(error)}.`);
  }
}

/**
 * Removes the socket of a killed node.
 *
 * @throws StartError if a process accepts connections on the socket: another node uses the data directory.
 */
async function clearSocket(path: string): Promise<void> {
  const isInUse = await new Promise<boolean>((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
  if (isInUse) {
    throw new StartError(`Another node is running with ${path}; stop it, or choose another --data-dir.`);
  }
  await rm(path, { force: true });
}

/** Creates the gate of the control port, which rejects requests without the control token. */
function createTokenGate(token: string): Gate {
  const expected = Buffer.from(`Bearer ${token}`);
  return createUnrestrictedGate((arrival) => {
    const actual = Buffer.from(arrival.header("authorization") ?? "");
    if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) {
      throw new RpcError("INVALID_TOKEN", 'The header authorization must be "Bearer " and the node\'s control token.');
    }
    return undefined;
  });
}

/** Reads or creates the token. If several processes create it at the same time, all get the same token. */
async function loadOrCreateToken(path: string): Promise<string> {
  await writeNewFile(path, randomBytes(32).toString("hex")).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") {
      throw error;
    }
  });
  await makeFilePrivate(path);
  return (await readFile(path, "utf8")).trim();
}
