/** Checks of the node's ports: free, bound by the node, or taken by another process. */
import { readdir, readFile, readlink } from "node:fs/promises";
import { createServer } from "node:net";
import type { Config } from "../../config/config.js";
import { type DoctorCheck, fail, ok, skip, warn } from "./check.js";
import type { LocalNode } from "./local-node.js";

interface RequiredPort {
  readonly name: string;
  readonly flag: string;
  readonly port: number;
  readonly host: string;
}

/** Checks each configured port: that the node listens on it or, if the node does not run, that it is free. */
export async function checkPorts(config: Config, node: LocalNode): Promise<DoctorCheck[]> {
  return await Promise.all(requiredPorts(config).map((required) => checkPort(required, config.portDrift, node)));
}

function requiredPorts({ host, ...config }: Config): RequiredPort[] {
  return [
    { name: "rpc", flag: "--rpc-port", port: config.rpcPort, host },
    { name: "omni", flag: "--omni-port", port: config.omniPort, host },
    ...(config.metricsEnabled ? [{ name: "metrics", flag: "--metrics-port", port: config.metricsPort, host }] : []),
    ...(config.mcpEnabled ? [{ name: "mcp", flag: "--mcp-port", port: config.mcpPort, host }] : []),
    ...(config.controlPort === undefined
      ? []
      : [{ name: "control", flag: "--control-port", port: config.controlPort, host: "127.0.0.1" }]),
  ];
}

async function checkPort(required: RequiredPort, drift: string, node: LocalNode): Promise<DoctorCheck> {
  const { flag, port, host } = required;
  const name = `port ${required.name}`;
  const actual = node.isThis ? node.health?.ports[required.name]?.actual : undefined;
  if (actual !== undefined) {
    return actual === port || port === 0
      ? ok(name, `The node listens on ${actual}.`)
      : warn(
          name,
          `The node listens on ${actual}, because ${port} was taken when it started.`,
          `Free ${port} (held by ${await describeHolder(port)}), or choose another ${flag}.`,
        );
  }
  if (port === 0) {
    return skip(name, "The node uses any free port.");
  }
  const code = await tryPort(port, host);
  if (code === undefined) {
    return ok(name, `${port} is free.`);
  }
  if (code !== "EADDRINUSE") {
    return fail(name, `${port} on ${host} cannot be bound (${code}).`, `Choose another ${flag} or --host.`);
  }
  const found = `${port} is taken by ${await describeHolder(port)}.`;
  return drift === "deny"
    ? fail(name, found, `Stop that process, or choose another ${flag}: the node will not start.`)
    : warn(name, found, `Stop that process, or choose another ${flag}: the node will use the next free port.`);
}

/** Returns the error code of an attempt to bind a port; undefined if the port is free. */
function tryPort(port: number, host: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code ?? "error"));
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
}

/** State of a listening socket in /proc/net/tcp. */
const listeningState = "0A";

/** Describes the process that listens on a port, if Linux permits this user to see the process. */
async function describeHolder(port: number): Promise<string> {
  const inodes = (await Promise.all(["/proc/net/tcp", "/proc/net/tcp6"].map((file) => readInodes(file, port)))).flat();
  for (const pid of inodes.length === 0 ? [] : await listDirectory("/proc")) {
    if (/^\d+$/.test(pid) && (await ownsAny(pid, inodes))) {
      const [program = "", ...args] = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
      return `the process ${pid} (${[program, ...args].join(" ").trim().slice(0, 80)})`;
    }
  }
  return "another process";
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
