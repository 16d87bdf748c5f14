/** Checks of a running node: its health, its public and internal addresses, and its agreement with its peers. */
import { existsSync } from "node:fs";
import { identityOfCertificate } from "../../base/crypto/certificate.js";
import { hex32 } from "../../base/crypto/hash.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import type { Config } from "../../config/config.js";
import { localUrl } from "../../config/local-url.js";
import {
  type HealthBody,
  listPeers,
  type NodeRequest,
  type PeerBody,
  requestHealth,
  requestNode,
} from "../calls/request-node.js";
import { controlFlagOf, type DoctorCheck, resultsOf } from "./check.js";
import { certificateAt, checkPublicCertificate } from "./check-certificate.js";
import type { GenesisFacts } from "./check-database.js";

interface NetworkDeps {
  readonly config: Config;
  readonly key: NodeKey | undefined;
  readonly node: LocalNode;
  readonly genesis: GenesisFacts | undefined;
}

const maxPeers = 5;
/** Number of peers whose errors are shown. */
const maxProblems = 2;
/**
 * Limits on the clock difference. Above `warnMs` a clock is wrong; above `failMs` nodes reject signatures and blocks.
 */
const clockLimits = { warnMs: 5_000, failMs: 60_000 };

/** Response at the address of the configured node. */
export interface LocalNode {
  readonly url: string;
  /** Reason for a missing response; undefined if a node responds. */
  readonly problem?: string;
  readonly publicKey?: string;
  /** True if the responding node is the configured one, or the key of the configured one is unknown. */
  readonly isThis: boolean;
  readonly health?: HealthBody;
}

/** Queries the public key and the health of the node, at the port that it reports to its control socket, if it does. */
export async function findNode(
  config: Config,
  configuredUrl: string | undefined,
  key: NodeKey | undefined,
): Promise<LocalNode> {
  const url = configuredUrl ?? localUrl({ ...config, rpcPort: (await boundPort(config)) ?? config.rpcPort });
  try {
    const publicKey = JSON.parse((await requestNode(url, "/publickey", anyCertificate)).text) as unknown;
    if (typeof publicKey !== "string" || !hex32.test(publicKey)) {
      return { url, isThis: false, problem: `The server at ${url} is not a node` };
    }
    const { health } = await requestHealth(url, anyCertificate);
    return { url, publicKey, health, isThis: key === undefined || key.publicKey === publicKey };
  } catch (error) {
    return { url, isThis: false, problem: (error as Error).message.replace(/\.$/, "") };
  }
}

/** Options of a request without secrets, which accepts any certificate. */
const anyCertificate: NodeRequest = { acceptsAnyCertificate: true };

/** Returns the public port that the node has bound, which may differ from the configured one; undefined if unknown. */
async function boundPort({ controlSocket, dataDir }: Config): Promise<number | undefined> {
  if (!existsSync(controlSocket)) {
    return undefined;
  }
  const [{ withControl }, { HealthService }] = await Promise.all([
    import("../calls/control.js"),
    import("../../../gen/gatehouse/health/v1/health_pb.js"),
  ]);
  try {
    const { snapshot } = await withControl({ dataDir, control: controlSocket }, HealthService, (node) =>
      node.getHealth({}),
    );
    return snapshot?.ports["rpc"]?.actual;
  } catch {
    return undefined;
  }
}

/** Runs the checks. All but the first are skipped if this node does not run. */
export async function checkNetwork(deps: NetworkDeps): Promise<DoctorCheck[]> {
  const { node } = deps;
  const running = describeRunning(deps);
  if (node.health === undefined || !node.isThis) {
    return [
      running,
      ...["public address", "public certificate", "internal address", "peers", "clock", "network"].map((name) =>
        resultsOf(name).skip("No node is running to check."),
      ),
    ];
  }
  const peers = await listPeers(node.url, anyCertificate);
  const [publicAddress, certificate, internalAddress, views] = await Promise.all([
    checkPublicAddress(deps),
    checkPublicCertificate(deps.config),
    checkInternalAddress(deps, node.health.ports.omni?.actual),
    Promise.all(peers.slice(0, maxPeers).map((peer) => requestPeer(peer, node.publicKey!))),
  ]);
  return [
    running,
    publicAddress,
    certificate,
    internalAddress,
    describePeers(deps, peers, views),
    describeClocks(views),
    describeNetworks(deps, views),
  ];
}

function describeRunning({ node, key }: NetworkDeps): DoctorCheck {
  const { ok, warn, fail } = resultsOf("node");
  const { url, problem, health, publicKey } = node;
  if (health === undefined) {
    return warn(`${problem ?? `No node responds at ${url}`}.`, "Start it, or give its address with --node.");
  }
  if (!node.isThis) {
    return fail(
      `Another node responds at ${url}: ${publicKey}, and not ${key?.publicKey ?? "this one"}.`,
      "Give the address of this node with --node, or its --data-dir.",
    );
  }
  const causes = Object.entries(health.subsystems).flatMap(([name, { status, lastError }]) =>
    status === "failed" ? [`${name}: ${lastError?.message ?? "it has failed"}`] : [],
  );
  const found = `It responds at ${url} and is ${health.status}${causes.length === 0 ? "" : ` (${causes.join("; ")})`}.`;
  const whyNot = health.accepting ? "" : whyNotAccepting(health);
  const show = `Run gatehouse health --node ${url}`;
  switch (health.status) {
    case "ok":
      return whyNot === "" ? ok(found) : warn(`${found}${whyNot}`, "Wait while it catches up; or remove the cause.");
    case "failing":
      return fail(found, `${show}, and read its log at /diagnostics.`);
    default:
      return warn(`${found}${whyNot}`, `${show}, which shows what each subsystem waits for.`);
  }
}

/** Returns a sentence with the reasons of the chain and the main loop for which a node does not accept transactions. */
function whyNotAccepting({ subsystems }: HealthBody): string {
  const reasons = ["chain", "main_loop"].flatMap((name) => subsystems[name]?.extra?.reason ?? []);
  return reasons.length === 0 ? "" : ` It does not accept transactions: ${reasons.join(" ")}`;
}

async function checkPublicAddress({ config, node }: NetworkDeps): Promise<DoctorCheck> {
  const { ok, skip, warn, fail } = resultsOf("public address");
  if (config.publicUrl === undefined) {
    return config.allowPrivatePeers
      ? skip("No --public-url is given: peers know the node by an address of this machine.")
      : warn(
          "No --public-url is given: peers know the node by an address of this machine, which they may not reach.",
          "Set --public-url.",
        );
  }
  const remedy = `Make ${config.publicUrl} lead to ${node.url}: check DNS, firewall and proxy.`;
  try {
    // Another check reports a certificate that is not trusted.
    const { text } = await requestNode(config.publicUrl, "/publickey", anyCertificate);
    return JSON.parse(text) === node.publicKey
      ? ok(`${config.publicUrl} leads to this node, from this machine.`)
      : fail(`${config.publicUrl} leads to another node: ${text.slice(0, 80)}.`, remedy);
  } catch (error) {
    return fail((error as Error).message, remedy);
  }
}

async function checkInternalAddress({ config, node }: NetworkDeps, port: number | undefined): Promise<DoctorCheck> {
  const { ok, skip, fail } = resultsOf("internal address");
  if (port === undefined) {
    return fail(
      "The node has no internal port: no other node can reach it.",
      `Check omni in the output of gatehouse health --node ${node.url}`,
    );
  }
  const host = new URL(config.publicUrl ?? node.url).hostname;
  const url = config.omniUrl ?? `${config.omniTls ? "https" : "http"}://${host}:${port}`;
  if (!config.omniTls) {
    return skip(`${url} is used without TLS: the proxy in front of it identifies the node.`);
  }
  const remedy = `Make ${url} lead to port ${port} of this machine, without TLS termination in between.`;
  try {
    const identity = identityOfCertificate((await certificateAt(new URL(url), "h2")).certificate.raw);
    return identity === node.publicKey
      ? ok(`${url} leads to this node, from this machine.`)
      : fail(`The server at ${url} is ${identity ?? "not a node"}.`, remedy);
  } catch (error) {
    return fail(`No server responds at ${url}: ${(error as Error).message}.`, remedy);
  }
}

/** State of the network as a peer reports it; only the URL if it does not respond. */
interface PeerView {
  readonly url: string;
  /** Clock of the peer minus the clock of this machine. */
  readonly aheadMs?: number;
  readonly genesisHash?: string;
  /** True if the peer has reached this node recently; undefined if the peer does not know this node. */
  readonly reachesUs?: boolean | undefined;
}

async function requestPeer({ connection: { string: url } }: PeerBody, publicKey: string): Promise<PeerView> {
  try {
    const { status, text, dateMs } = await requestNode(url, "/chain/head");
    if (status >= 400) {
      return { url };
    }
    // The header Date is truncated to seconds, so add half a second on average.
    const aheadMs = dateMs + 500 - Date.now();
    const { genesisHash } = JSON.parse(text) as { readonly genesisHash: string };
    const list = await listPeers(url);
    return { url, aheadMs, genesisHash, reachesUs: list.find(({ identity }) => identity === publicKey)?.status.online };
  } catch {
    return { url };
  }
}

function describePeers(
  { config, genesis, node }: NetworkDeps,
  peers: readonly PeerBody[],
  views: readonly PeerView[],
): DoctorCheck {
  const { ok, warn, fail } = resultsOf("peers");
  if (peers.length === 0 && config.role === "standby") {
    return ok("A standby has no peers until it takes over as the writer.");
  }
  if (peers.length === 0) {
    return genesis?.isAuthority === true
      ? warn(
          "The node knows no peers: no other node has its blocks.",
          `Let other nodes join: gatehouse join ${config.publicUrl ?? "URL"}`,
        )
      : fail(
          "The node knows no peers and produces no blocks.",
          `Add a peer: gatehouse peers add URL ${controlFlagOf(config)}`,
        );
  }
  const online = peers.filter(({ status }) => status.online);
  const unverified = peers.filter(({ verification }) => !verification.status);
  const notReaching = views.filter(({ reachesUs }) => reachesUs === false);
  const problems = peers.flatMap(({ connection, verification: { message } }) =>
    message === null ? [] : [` ${connection.string}: ${message}`],
  );
  const found =
    `${online.length} of ${peers.length} are online, ${peers.length - unverified.length} verified.` +
    problems.slice(0, maxProblems).join("");
  if (online.length === 0) {
    return fail(found, `Run gatehouse peers book ${controlFlagOf(config)}, which shows the error of each peer.`);
  }
  if (notReaching.length > 0) {
    return warn(
      `${found} ${notReaching.map(({ url }) => url).join(", ")} cannot reach this node.`,
      "Make the internal address reachable from there: check --omni-url, firewall and NAT.",
    );
  }
  if (problems.length > 0) {
    return warn(found, `Run gatehouse peers --node ${node.url}, which shows why a peer is not used.`);
  }
  const reaching = views.filter(({ reachesUs }) => reachesUs === true).length;
  return ok(`${found} ${reaching} of ${views.length} queried peers reach this node.`);
}

function describeClocks(views: readonly PeerView[]): DoctorCheck {
  const { ok, skip, warn, fail } = resultsOf("clock");
  const reported = views.flatMap(({ aheadMs }) => (aheadMs === undefined || Number.isNaN(aheadMs) ? [] : [aheadMs]));
  if (reported.length === 0) {
    return skip("No peer responds with its time.");
  }
  // Use the median, since one peer with a wrong clock proves nothing about this machine.
  const aheadMs = reported.sort((a, b) => a - b)[Math.floor(reported.length / 2)]!;
  const offS = Math.round(Math.abs(aheadMs) / 1000);
  const found = `This machine's clock is ${offS} s ${aheadMs > 0 ? "behind" : "ahead of"} that of its peers (${reported.length} queried).`;
  const remedy = "Synchronize the system clock: timedatectl set-ntp true";
  if (Math.abs(aheadMs) > clockLimits.failMs) {
    return fail(found, remedy);
  }
  return Math.abs(aheadMs) > clockLimits.warnMs
    ? warn(found, remedy)
    : ok(`It agrees with ${countPeers(reported.length)}.`);
}

function countPeers(peers: number): string {
  return peers === 1 ? "1 peer" : `${peers} peers`;
}

function describeNetworks({ genesis }: NetworkDeps, views: readonly PeerView[]): DoctorCheck {
  const { ok, skip, fail } = resultsOf("network");
  const reachable = views.filter(({ genesisHash }) => genesisHash !== undefined);
  const others = reachable.filter(({ genesisHash }) => genesisHash !== genesis?.hash);
  if (reachable.length === 0) {
    return skip("No peer responds with its genesis.");
  }
  return others.length === 0
    ? ok(`${countPeers(reachable.length)} responded, with the same genesis.`)
    : fail(
        `${others.map(({ url, genesisHash }) => `${url} belongs to the network ${genesisHash}`).join("; ")}.`,
        "Use peers of this network, or join that one with another --data-dir.",
      );
}
