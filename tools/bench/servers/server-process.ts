/** Starts servers in separate processes: the node as shipped, and the bare baselines. */
import type { Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { join, resolve as resolvePath } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { BareAnswers } from "./bare-server.js";
import type { FrontAnswers, FrontKind } from "./front-server.js";
import type { Usage } from "./report-usage.js";

/** Server under load. */
export interface ServerProcess {
  readonly port: number;
  /** Returns the usage so far. Rejects if the process has exited. */
  usage(): Promise<Usage>;
  /** Stops the server; kills it if it does not stop. */
  stop(): Promise<void>;
}

/** Node that is measured. */
export interface NodeProcess extends ServerProcess {
  readonly pid: number;
  /** Internal port. */
  readonly omniPort: number;
  /** Number of lines that the node has logged. */
  logLines(): number;
  /** Exit code; undefined while the node runs. */
  exitCode(): number | string | undefined;
}

const built = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
/** Time limit in milliseconds for a node to stop before it is killed. */
const stopMs = 15_000;

/** Start options of a node. */
export interface NodeOptions {
  /** Directory of the checkout whose `dist` is started. Default: this one. */
  readonly build?: string | undefined;
  /** Options of Node.js. */
  readonly execArgv?: readonly string[];
  /** Variables to add to the environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** True to count log lines instead of printing them. */
  readonly hidesLog?: boolean;
}

/** Starts `gatehouse start` with these arguments on free ports. Resolves once the node is ready. */
export async function startGatehouse(
  args: readonly string[],
  { build, execArgv = [], env = {}, hidesLog = false }: NodeOptions = {},
): Promise<NodeProcess> {
  const root = build === undefined ? built("../../../..") : resolvePath(build);
  const { bin } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { bin: { gatehouse: string } };
  const main = join(root, bin.gatehouse);
  const ports = ["--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0"];
  // The measured node must produce its own blocks; an older build may not know this option.
  const recoverFlags = build === undefined ? ["--recover"] : [];
  const child = fork(
    main,
    ["start", ...ports, ...recoverFlags, "--rate-limit", "0", "--log-level", "warn", "--json", ...args],
    {
      execArgv: ["--import", new URL("report-usage.js", import.meta.url).href, ...execArgv],
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", hidesLog ? "pipe" : "inherit", "ipc"],
    },
  );
  let logLines = 0;
  if (child.stderr !== null) {
    createInterface({ input: child.stderr }).on("line", () => logLines++);
  }
  const line = await firstLine(child);
  const bound = (JSON.parse(line) as { readonly ports: { readonly rpc: number; readonly omni: number } }).ports;
  return {
    ...handle(child, bound.rpc),
    pid: child.pid!,
    omniPort: bound.omni,
    logLines: () => logLines,
    exitCode: () => child.exitCode ?? child.signalCode ?? undefined,
  };
}

/** Starts a framework with constant responses. */
export async function startFront(kind: FrontKind, answers: FrontAnswers): Promise<ServerProcess> {
  return await startWith("front-server.js", { kind, ...answers });
}

/** Starts a bare server. */
export async function startBare({ kind, answers }: BareAnswers): Promise<ServerProcess> {
  return await startWith("bare-server.js", { kind, answers });
}

/** Starts a script that listens after it has received its responses. */
async function startWith(script: string, beginning: object): Promise<ServerProcess> {
  const child = fork(built(script), {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    serialization: "advanced",
  });
  child.send(beginning);
  const { port } = await reply<{ readonly port: number }>(child, "port");
  return handle(child, port);
}

function handle(child: ChildProcess, port: number): ServerProcess {
  return {
    port,
    async usage() {
      if (child.connected) {
        child.send("usage");
      }
      return (await reply<{ readonly usage: Usage }>(child, "usage")).usage;
    },
    async stop() {
      if (hasEnded(child)) {
        return;
      }
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      const force = setTimeout(() => child.kill("SIGKILL"), stopMs);
      await ended;
      clearTimeout(force);
    },
  };
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

async function firstLine(child: ChildProcess): Promise<string> {
  return await new Promise((resolve, reject) => {
    let text = "";
    child.once("exit", (code) => reject(new Error(`The node ended with code ${code} before it was ready.`)));
    child.stdout!.on("data", (chunk: Buffer) => {
      text += String(chunk);
      const [line, ...rest] = text.split("\n");
      if (line !== undefined && rest.length > 0) {
        resolve(line);
      }
    });
  });
}

async function reply<T extends object>(child: ChildProcess, key: keyof T): Promise<T> {
  return await new Promise((resolve, reject) => {
    const onExit = (code: number | null): void => reject(new Error(`The server ended with code ${code}.`));
    if (hasEnded(child)) {
      onExit(child.exitCode);
      return;
    }
    const onMessage = (message: unknown): void => {
      if (typeof message === "object" && message !== null && key in message) {
        child.off("message", onMessage).off("exit", onExit);
        resolve(message as T);
      }
    };
    child.on("message", onMessage).once("exit", onExit);
  });
}

/** Returns the transport to the control service of a node. */
export function controlOf(dataDir: string): Transport {
  return createGrpcTransport({
    baseUrl: "http://localhost",
    nodeOptions: { createConnection: () => connect(join(dataDir, "control.sock")) },
  });
}
