/** `gatehouse devnet`: a network of nodes in one process, to look at. */
import { type Command, InvalidArgumentError } from "commander";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { loadConfig } from "../config.js";
import { createProcessErrors, type ProcessErrors, watchProcess } from "../health/process-errors.js";
import { loadOrCreateNodeKey } from "../info/node-key.js";
import { type RunningNode, startNode } from "../node.js";
import { type Repetition, repeat } from "../repeat.js";
import { askNode } from "./ask-node.js";
import { paint, print, table } from "./output.js";
import { type SampleSection, seedSamples } from "./samples.js";
import { stopOnSignals } from "./signals.js";

interface DevnetFlags {
  readonly nodes: number;
  readonly rpcPort: number;
  readonly dataDir?: string;
  readonly logLevel: string;
  readonly json?: boolean;
}

const firstPort = 53550;
const maxNodes = 16;
/** How often the other nodes are brought the blocks of the first one. */
const relayEveryMs = 200;

/** Adds the command. */
export function addDevnet(program: Command): void {
  program
    .command("devnet")
    .description("Run a small network in one process, with sample data, until Ctrl-C.")
    .option("--nodes <NUMBER>", `How many nodes, 1 to ${maxNodes}; one alone is dormant.`, wholeNumber(1, maxNodes), 2)
    .option(
      "--rpc-port <PORT>",
      "First port to try; each node takes the next free one.",
      wholeNumber(1, 65_000),
      firstPort,
    )
    .option("--data-dir <DIR>", "Keep the nodes' data here; without it the data is gone at the end.")
    .option("--log-level <LEVEL>", "How much to log, to stderr.", "warn")
    .option("--json", "Print one ready event for each node, then a network-ready event.")
    .action(run);
}

async function run(flags: DevnetFlags): Promise<void> {
  const directory =
    flags.dataDir === undefined ? await mkdtemp(join(tmpdir(), "gatehouse-devnet-")) : resolve(flags.dataDir);
  const nodes: RunningNode[] = [];
  let relay: Repetition | undefined;
  const close = async (): Promise<void> => {
    await relay?.stop();
    await Promise.all(nodes.map((node) => node.stop()));
    if (flags.dataDir === undefined) {
      await rm(directory, { recursive: true, force: true });
    }
  };
  try {
    const processErrors = createProcessErrors();
    const ports = await freePorts(flags.nodes, flags.rpcPort);
    await writeGenesis(directory);
    for (const [i, port] of ports.entries()) {
      const node = await startOne(flags, directory, ports, i, processErrors);
      nodes.push(node);
      if (i === 0) {
        watchProcess(processErrors, node.log);
      }
      if (flags.json === true) {
        print(JSON.stringify({ event: "ready", rpc: node.rpcUrl, ports: node.ports }));
      } else {
        print(`${i === 0 ? "\n" : ""}  node ${i + 1} is up on port ${port}`);
      }
    }
    relay = repeat(
      () => relayBlocks(nodes),
      relayEveryMs,
      (error) => nodes[0]?.log.warn({ err: error }, "Blocks could not be brought to the others"),
    );
    await untilSettled(nodes);
    const authority = await loadOrCreateNodeKey(dataDirOf(directory, 0));
    const samples = await seedSamples(nodes[0]!.rpcUrl, directory, authority);
    print(...(flags.json === true ? [JSON.stringify({ event: "network-ready" })] : await overview(nodes, samples)));
  } catch (error) {
    await close();
    throw error;
  }
  await stopOnSignals(close);
}

async function startOne(
  flags: DevnetFlags,
  directory: string,
  ports: readonly number[],
  index: number,
  processErrors: ProcessErrors,
): Promise<RunningNode> {
  const dataDir = dataDirOf(directory, index);
  const peersFile = join(dataDir, "peers.json");
  const others = ports.filter((_, i) => i !== index);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  await writeFile(peersFile, JSON.stringify(others.map((port) => ({ url: `http://127.0.0.1:${port}` }))));
  const config = loadConfig({
    flags: {
      "data-dir": dataDir,
      host: "127.0.0.1",
      "rpc-port": String(ports[index]),
      "omni-port": "0",
      "port-drift": "deny",
      genesis: genesisPath(directory),
      peers: peersFile,
      "loop-interval": "1",
      "log-level": flags.logLevel,
      ...(flags.json === true && { json: true }),
    },
    env: {},
    cwd: directory,
  });
  return await startNode(config, { processErrors });
}

function dataDirOf(directory: string, index: number): string {
  return join(directory, `node-${index + 1}`);
}

function genesisPath(directory: string): string {
  return join(directory, "genesis.json");
}

/** The first node makes the blocks. A network that was kept keeps its genesis. */
async function writeGenesis(directory: string): Promise<void> {
  const { publicKey } = await loadOrCreateNodeKey(dataDirOf(directory, 0));
  const genesis = { name: "devnet", timestamp: Date.now(), authorities: [publicKey] };
  if (!existsSync(genesisPath(directory))) {
    await writeFile(genesisPath(directory), `${JSON.stringify(genesis, null, 2)}\n`);
  }
}

/** Brings the others the blocks of the first node, as a consensus process would. */
async function relayBlocks([first, ...others]: readonly RunningNode[]): Promise<void> {
  for (const other of others) {
    for (;;) {
      const next = (other.chain.head()?.number ?? 0n) + 1n;
      const stored = next <= (first?.chain.head()?.number ?? 0n) ? await first?.block(next) : undefined;
      if (stored === undefined) {
        break;
      }
      await other.chain.apply(stored.block);
    }
  }
}

/** Nodes learn of each other with their first ticks; a lone node has nobody to wait for. */
async function untilSettled(nodes: readonly RunningNode[]): Promise<void> {
  const giveUpAtMs = Date.now() + 10_000;
  while (Date.now() < giveUpAtMs) {
    const peerLists = await Promise.all(nodes.map(({ rpcUrl }) => askNode(rpcUrl, "/peerlist")));
    const peers = peerLists.flatMap(({ text }) => JSON.parse(text) as { status: { ready: boolean } }[]);
    if (peers.every(({ status }) => status.ready)) {
      return;
    }
    await sleep(100);
  }
}

async function overview(nodes: readonly RunningNode[], samples: readonly SampleSection[]): Promise<string[]> {
  const rows = await Promise.all(
    nodes.map(async ({ rpcUrl, publicKey }, i) => {
      const { status } = JSON.parse((await askNode(rpcUrl, "/health")).text) as { status: string };
      return [`  ${i + 1}`, rpcUrl, paint(status === "ok" ? "green" : "yellow", status), publicKey];
    }),
  );
  const url = nodes[0]!.rpcUrl;
  const routes = ["/health", "/info", "/peerlist", "/readyz?verbose", "/chain/head"];
  return [
    "",
    ...table([["  NODE", "HTTP AND GRPC", "STATUS", "PUBLIC KEY"], ...rows]),
    "",
    "  Try:",
    ...routes.map((route) => `    curl '${url}${route}'`),
    "",
    ...samples.flatMap(({ title, lines }) => [`  ${title}`, ...lines.map((line) => `    ${line}`), ""]),
    `  ${paint("dim", "Ctrl-C stops the network.")}`,
    "",
  ];
}

async function freePorts(count: number, first: number): Promise<number[]> {
  const ports: number[] = [];
  for (let port = first; ports.length < count; port++) {
    if (port > 65_535) {
      throw new Error(`There are not ${count} free ports from ${first} on; choose another --rpc-port.`);
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

function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,5}$/.test(text) ? Number(text) : NaN;
    if (!(value >= least && value <= most)) {
      throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
    }
    return value;
  };
}
