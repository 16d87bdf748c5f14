/** Checks of the node's ports: free, bound by the node, or taken by another process. */
import { readdir, readFile, readlink } from "node:fs/promises";
import { createServer } from "node:net";
import type { Config } from "../../config/config.js";
import { type DoctorCheck, resultsOf } from "./check.js";
import type { LocalNode } from "./check-network.js";

/** Checks each configured port: that the node listens on it or, if the node does not run, that it is free. */
export async function checkPorts(config: Config, node: LocalNode): Promise<DoctorCheck[]> {
  const ports: Readonly<Record<string, number | undefined>> = {
    rpc: config.rpcPort,
    omni: config.omniPort,
    metrics: config.metricsEnabled ? config.metricsPort : undefined,
    mcp: config.mcpEnabled ? config.mcpPort : undefined,
    control: config.controlPort,
  };
  const checks = Object.entries(ports).map(async ([name, port]) =>
    port === undefined
      ? []
      : [await checkPort(name, port, name === "control" ? "127.0.0.1" : config.host, config, node)],
  );
  return (await Promise.all(checks)).flat();
}

async function checkPort(
  portName: string,
  port: number,
  host: string,
  { portDrift }: Config,
  node: LocalNode,
): Promise<DoctorCheck> {
  const { ok, skip, warn, fail } = resultsOf(`port ${portName}`);
  const flag = `--${portName}-port`;
  const actual = node.isThis ? node.health?.ports[portName]?.actual : undefined;
  if (actual === port || (actual !== undefined && port === 0)) {
    return ok(`The node listens on ${actual}.`);
  }
  if (actual !== undefined) {
    return warn(
      `The node listens on ${actual}, because ${port} was taken when it started.`,
      `Free ${port} (held by ${await describeHolder(port)}), or choose another ${flag}.`,
    );
  }
  if (port === 0) {
    return skip("The node uses any free port.");
  }
  const code = await tryPort(port, host);
  if (code === undefined) {
    return ok(`${port} is free.`);
  }
  if (code !== "EADDRINUSE") {
    return fail(`${port} on ${host} cannot be bound (${code}).`, `Choose another ${flag} or --host.`);
  }
  const found = `${port} is taken by ${await describeHolder(port)}.`;
  const remedy = `Stop that process, or choose another ${flag}: the node will`;
  return portDrift === "deny" ? fail(found, `${remedy} not start.`) : warn(found, `${remedy} use the next free port.`);
}

function tryPort(port: number, host: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code ?? "error"));
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
}

/** Limit on the length of a shown command, in characters: the options that identify a node fit. */
const maxCommandLength = 200;
/** State of a listening socket in /proc/net/tcp. */
const listeningState = "0A";

/** Describes the process that listens on a port, if Linux permits this user to see the process. */
async function describeHolder(port: number): Promise<string> {
  const inodes = (await Promise.all(["/proc/net/tcp", "/proc/net/tcp6"].map((file) => readInodes(file, port)))).flat();
  for (const pid of inodes.length === 0 ? [] : await listDirectory("/proc")) {
    if (/^\d+$/.test(pid) && (await ownsAny(pid, inodes))) {
      const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
      return `the process ${pid} (${shortenCommand(command.split("\0").join(" ").trim())})`;
    }
  }
  return "another process";
}

/** Returns the command up to a limit on its length, with whole words. */
function shortenCommand(command: string): string {
  const words = command.slice(0, maxCommandLength + 1);
  return command.length <= maxCommandLength ? command : `${words.slice(0, words.lastIndexOf(" "))} …`;
}

/** Returns the inodes of the sockets that listen on a port. */
async function readInodes(file: string, port: number): Promise<string[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  const hexPort = port.toString(16).toUpperCase().padStart(4, "0");
  return text.split("\n").flatMap((line) => {
    const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
    return local.endsWith(`:${hexPort}`) && state === listeningState ? [inode] : [];
  });
}

/** Returns true if a process has one of the sockets open. */
async function ownsAny(pid: string, inodes: readonly string[]): Promise<boolean> {
  const links = await Promise.all(
    (await listDirectory(`/proc/${pid}/fd`)).map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => "")),
  );
  return links.some((link) => inodes.some((inode) => link === `socket:[${inode}]`));
}

async function listDirectory(path: string): Promise<string[]> {
  return await readdir(path).catch(() => []);
}
