/** Implementation of `gatehouse devnet`. */
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Config, type ConfigSources, loadConfig } from "../../config/config.js";
import { pathInDataDir, writeDataDirFile } from "../../config/data-dir-files.js";
import { ProcessErrors, watchProcess } from "../../health/process-errors.js";
import { loadOrCreateNodeKey } from "../../base/crypto/node-key.js";
import { createPrivateDirectory, privateFileMode } from "../../base/files/private-files.js";
import { type RunningNode, startNode } from "../../node/node.js";
import { type PeriodicTask, startPeriodicTask } from "../../base/async/periodic-task.js";
import { type PeerBody, requestNode } from "../calls/request-node.js";
import { paint, printResult, shorten, table } from "../terminal/output.js";
import { type SampleSection, seedSamples } from "./samples.js";
import { runUntilSignal, type Service } from "./signals.js";

export interface DevnetFlags {
  readonly nodes: number;
  readonly rpcPort: number;
  readonly dataDir?: string;
  readonly logLevel: string;
  readonly json?: boolean;
}

const drawEveryMs = 1_000;
/** Time limit for the nodes to discover each other, or to reach the same block. */
const readyWithinMs = 30_000;

export async function runNetwork(flags: DevnetFlags): Promise<void> {
  await runUntilSignal((signal) => startNetwork(flags, signal));
}

/** Starts the network. Returns the running service. */
async function startNetwork(flags: DevnetFlags, signal: AbortSignal): Promise<Service> {
  const directory =
    flags.dataDir === undefined ? await mkdtemp(join(tmpdir(), "gatehouse-devnet-")) : resolve(flags.dataDir);
  const nodes: RunningNode[] = [];
  let drawing: PeriodicTask | undefined;
  const stop = async (): Promise<void> => {
    await drawing?.stop();
    await Promise.all(nodes.map((node) => node.stop()));
    if (flags.dataDir === undefined) {
      await rm(directory, { recursive: true, force: true });
    }
  };
  try {
    const processErrors = new ProcessErrors();
    const ports = await freePorts(2 * flags.nodes, flags.rpcPort);
    const [rpcPorts, omniPorts] = [ports.slice(0, flags.nodes), ports.slice(flags.nodes)];
    const isNew = await writeGenesis(directory);
    for (const [i, port] of rpcPorts.entries()) {
      // Each node knows the first one and discovers the others through it; the first one knows the second.
      const seed = omniPorts[i === 0 ? 1 : 0];
      const config = await configure(flags, directory, i, seed, {
        "rpc-port": String(port),
        "omni-port": String(omniPorts[i]),
        recover: isNew,
      });
      const node = await startNode(config, { processErrors, signal });
      nodes.push(node);
      if (i === 0) {
        watchProcess(processErrors, node.log);
      }
      const text = `${i === 0 ? "\n" : ""}  node ${i + 1} is up on port ${port}`;
      printResult(flags, { event: "ready", rpc: node.rpcUrl, ports: node.ports }, () => text);
    }
    await untilReady(nodes, signal);
    const authority = await loadOrCreateNodeKey(dataDirOf(directory, 0));
    const samples = await seedSamples(nodes[0]!.rpcUrl, directory, authority, ownCommand());
    await untilReady(nodes, signal);
    printResult(flags, { event: "network-ready" }, () => overview(nodes[0]!.rpcUrl, samples));
    drawing = flags.json === true ? undefined : await drawTable(nodes);
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

/** Writes the peers file of a node. Returns its configuration. */
async function configure(
  { logLevel, json }: DevnetFlags,
  directory: string,
  index: number,
  seed: number | undefined,
  own: ConfigSources["flags"],
): Promise<Config> {
  const dataDir = dataDirOf(directory, index);
  const peers = seed === undefined ? [] : [{ url: `https://127.0.0.1:${seed}` }];
  await createPrivateDirectory(dataDir);
  await writeFile(pathInDataDir(dataDir, "peers"), JSON.stringify(peers), { mode: privateFileMode });
  return loadConfig({
    flags: {
      "data-dir": dataDir,
      host: "127.0.0.1",
      "allow-private-peers": true,
      "port-drift": "deny",
      genesis: pathInDataDir(directory, "genesis"),
      "loop-interval": "1",
      "log-level": logLevel,
      json: json === true,
      ...own,
    },
    env: {},
    cwd: directory,
  });
}

/** Returns a shell command that runs this program in the current directory. */
function ownCommand(): string {
  const script = process.argv[1]!;
  const path = relative("", script);
  return `node '${path.startsWith("..") ? script : path}'`;
}

function dataDirOf(directory: string, index: number): string {
  return join(directory, `node-${index + 1}`);
}

/** Writes a genesis with the first node as the authority, unless the network has one. Returns true if it is new. */
async function writeGenesis(directory: string): Promise<boolean> {
  const { publicKey } = await loadOrCreateNodeKey(dataDirOf(directory, 0));
  const genesis = { name: "devnet", timestamp: Date.now(), authorities: [publicKey] };
  const isNew = !existsSync(pathInDataDir(directory, "genesis"));
  if (isNew) {
    await writeDataDirFile(directory, "genesis", `${JSON.stringify(genesis, null, 2)}\n`);
  }
  return isNew;
}

/** Waits up to 30 s until all nodes are ready, report each other as ready, and are at the same block. */
async function untilReady(nodes: readonly RunningNode[], signal: AbortSignal): Promise<void> {
  const deadlineMs = Date.now() + readyWithinMs;
  while (Date.now() < deadlineMs && !signal.aborted) {
    const states = await Promise.all(nodes.map(({ rpcUrl }) => fetchState(rpcUrl)));
    const areReady = states.every(
      ({ isReady, block, peers }) =>
        isReady &&
        block === states[0]!.block &&
        peers.length === nodes.length - 1 &&
        peers.every(({ sync, status }) => status.ready && sync.block === block),
    );
    if (areReady) {
      return;
    }
    await sleep(100);
  }
}

async function fetchState(url: string): Promise<{ isReady: boolean; block: number; peers: PeerBody[] }> {
  const paths = ["/readyz?exclude=dormant", "/chain/head", "/peerlist"];
  const [ready, head, peers] = await Promise.all(paths.map((path) => requestNode(url, path)));
  return {
    isReady: ready!.status === 200,
    block: (JSON.parse(head!.text) as { number: number }).number,
    peers: JSON.parse(peers!.text) as PeerBody[],
  };
}

function overview(url: string, samples: readonly SampleSection[]): string[] {
  const routes = ["/health", "/info", "/peerlist", "/readyz?verbose", "/chain/head"];
  return [
    "",
    "  Look:",
    `    ${url}/explore   blocks, transactions and programs`,
    `    ${url}/status    status of the node`,
    `    ${url}/docs      API reference`,
    "",
    "  Try:",
    ...routes.map((route) => `    curl '${url}${route}'`),
    "",
    ...samples.flatMap(({ title, lines }) => [`  ${title}`, ...lines.map((line) => `    ${line}`), ""]),
    `  ${paint("dim", "Ctrl-C stops the network.")}`,
    "",
  ];
}

/** Prints a table of the nodes. On a terminal, overwrites it whenever a state has changed. */
async function drawTable(nodes: readonly RunningNode[]): Promise<PeriodicTask | undefined> {
  const { stdout } = process;
  let drawn: readonly string[] = [];
  const draw = async (): Promise<void> => {
    const lines = await networkTable(nodes);
    if (lines.join("\n") !== drawn.join("\n")) {
      const cursorUp = drawn.length === 0 ? "" : `\u001b[${drawn.length}A`;
      stdout.write(`${cursorUp}${lines.map((line) => `${stdout.isTTY ? "\u001b[2K" : ""}${line}\n`).join("")}`);
      drawn = lines;
    }
  };
  await draw();
  // If the states are not available now, try again at the next drawing.
  return stdout.isTTY ? startPeriodicTask(draw, drawEveryMs, () => undefined) : undefined;
}

async function networkTable(nodes: readonly RunningNode[]): Promise<string[]> {
  const rows = await Promise.all(
    nodes.map(async ({ rpcUrl, publicKey }, i) => {
      const paths = ["/health", "/chain/head", "/peerlist"];
      const responses = await Promise.all(paths.map((path) => requestNode(rpcUrl, path)));
      const [health, head, peers] = responses.map(({ text }) => JSON.parse(text) as unknown) as [
        { status: string; accepting: boolean },
        { number: number },
        PeerBody[],
      ];
      return [
        `  ${i + 1}`,
        rpcUrl,
        paint(health.status === "ok" ? "green" : "yellow", health.status),
        health.accepting ? "yes" : paint("yellow", "no"),
        String(head.number),
        `${peers.filter(({ status }) => status.ready).length} of ${nodes.length - 1}`,
        shorten(publicKey),
      ];
    }),
  );
  return [...table([["  NODE", "HTTP AND GRPC", "STATUS", "ACCEPTING", "BLOCK", "PEERS", "PUBLIC KEY"], ...rows]), ""];
}

/** Returns the lowest free ports from a first one on. Throws Error if there are too few. */
async function freePorts(count: number, first: number): Promise<number[]> {
  const ports: number[] = [];
  for (let port = first; ports.length < count; port++) {
    if (port > 65_535) {
      throw new Error(`There are fewer than ${count} free ports from ${first} on; choose another --rpc-port.`);
    }
    if (await isFree(port)) {
      ports.push(port);
    }
  }
  return ports;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
