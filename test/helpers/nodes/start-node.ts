/** Starts real nodes for tests, with port 0, a temporary directory and a database file. */
import type { Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { connect } from "node:net";
import { join, resolve } from "node:path";
import { loadConfig } from "../../../src/config/config.js";
import { ProcessErrors } from "../../../src/health/process-errors.js";
import { type RunningNode, startNode, type StartOptions } from "../../../src/node/node.js";
import { type Target, type TransportName, transports } from "../wire/transports.js";
import { fileTeardown, type Teardown, temporaryDirectory } from "./teardown.js";
import { writeFile, readFile } from "node:fs/promises";
import { genesisOf, type TestKey, testKey, writeKey } from "../chain/keys.js";
import { askJson } from "../wire/plain-client.js";
import { freePort } from "./free-port.js";
import { until } from "./until.js";
import { run } from "../process/programs.js";
import { noLagLimit } from "./no-lag-limit.js";

/** The sample genesis. */
export const sampleGenesis = resolve("examples/genesis.json");

/** A peer that never responds: nothing listens on port 9. */
export const silentPeer = "https://127.0.0.1:9";

/** A running node. */
export interface TestNode extends RunningNode {
  readonly dir: string;
  readonly port: number;
  readonly databaseFile: string;
  readonly processErrors: ProcessErrors;
  /** Transport to its control service. */
  readonly control: Transport;
}

/** Starts a node that all tests of a file share. */
export function sharedTestNode(flags: Readonly<Record<string, string | boolean>>): Pick<TestNode, "port"> {
  let node: TestNode | undefined;
  const t = fileTeardown();
  test.before(async () => {
    node = await startTestNode(t, flags);
  });
  return {
    get port() {
      return node!.port;
    },
  };
}

/** Starts two nodes that all tests of a file share, one with TLS. Returns the target of a transport. */
export function sharedTargets(): (name: TransportName) => Target {
  let targets: Readonly<Record<"tls" | "cleartext", Target>>;
  const t = fileTeardown();
  test.before(async () => {
    targets = { tls: await startTlsNode(t), cleartext: await startTestNode(t) };
  });
  return (name) => (transports[name].alpn === undefined ? targets.cleartext : targets.tls);
}

/**
 * Starts a node with these flags, by default on port 0 of 127.0.0.1 and with --recover. It is stopped after the test.
 */
export async function startTestNode(
  t: Teardown,
  flags: Readonly<Record<string, string | boolean | undefined>> = {},
  dir?: string,
  options: Partial<StartOptions> = {},
): Promise<TestNode> {
  const home = dir ?? (await temporaryDirectory(t));
  const processErrors = new ProcessErrors();
  const config = loadConfig({
    flags: {
      "data-dir": home,
      host: "127.0.0.1",
      "rpc-port": "0",
      "omni-port": "0",
      "log-level": "silent",
      recover: true,
      ...flags,
    },
    env: {},
    cwd: home,
  });
  const node = await startNode(config, { processErrors, overload: noLagLimit, ...options });
  t.teardown(() => node.stop());
  return {
    ...node,
    dir: home,
    port: node.ports.rpc!,
    databaseFile: config.databaseUrl.replace(/^sqlite:/, ""),
    processErrors,
    control: controlTransport(join(home, "control.sock")),
  };
}

/** Returns flags with which a node can start again on the same public port. A port that 0 gave may be taken by then. */
export async function fixedPort(): Promise<Readonly<Record<string, string>>> {
  return { "rpc-port": String(await freePort()), "port-drift": "deny" };
}

/** Creates a Connect transport over the socket of a control service. */
export function controlTransport(path: string): Transport {
  return createGrpcTransport({
    baseUrl: "http://localhost",
    nodeOptions: { createConnection: () => connect(path) },
  });
}

/**
 * Creates a data directory as an operator would: `genesis.json` with these authorities, and `identity.key` of the first
 * one.
 */
export async function authorityDirectory(t: Teardown, ...authorities: readonly TestKey[]) {
  const dir = await temporaryDirectory(t);
  await writeFile(join(dir, "genesis.json"), genesisOf(...authorities));
  await writeKey(join(dir, "identity.key"), authorities[0]!);
  return dir;
}

/**
 * Starts a node that is the only authority of its network. Its one peer never responds. Resolves once the node accepts
 * transactions.
 */
export async function startMember(
  t: Teardown,
  flags: Readonly<Record<string, string | boolean>> = {},
): Promise<TestNode> {
  const dir = await authorityDirectory(t, testKey(1));
  await writeFile(join(dir, "peers.json"), JSON.stringify([{ url: silentPeer }]));
  const own = { genesis: "genesis.json", peers: "peers.json", "loop-interval": "0.1" };
  const node = await startTestNode(t, { ...own, ...flags }, dir);
  await until(async () => (await askJson<{ accepting: boolean }>(node.port, "/health")).accepting);
  return node;
}

/** Creates a self-signed certificate for localhost and 127.0.0.1, with a NIST P-256 key. */
export async function makeCertificate(dir: string, days = 1): Promise<{ readonly cert: string; readonly key: string }> {
  const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", String(days)];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  await run("openssl", ["req", "-x509", ...kind, ...subject, "-keyout", key, "-out", cert]);
  return { cert, key };
}

/** Starts a node with TLS. */
export async function startTlsNode(
  t: Teardown,
  flags: Readonly<Record<string, string | boolean>> = {},
): Promise<{ readonly node: TestNode; readonly port: number; readonly ca: Buffer; readonly cert: string }> {
  const { cert, key } = await makeCertificate(await temporaryDirectory(t));
  const node = await startTestNode(t, { "tls-cert": cert, "tls-key": key, ...flags });
  return { node, port: node.port, ca: await readFile(cert), cert };
}
