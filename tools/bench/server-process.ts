/** Servers in processes of their own: the node as it is shipped, and the bare baselines. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { resolve as resolvePath } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { ConstantAnswer } from "./bare-http2.js";
import type { FrontKind } from "./front-server.js";
import type { Usage } from "./report-usage.js";

/** A server under load. */
export interface ServerProcess {
  readonly port: number;
  /** Rejects when the process has ended. */
  usage(): Promise<Usage>;
  /** Stops it, if need be by force. */
  stop(): Promise<void>;
}

/** A node that is measured. */
export interface NodeProcess extends ServerProcess {
  readonly pid: number;
  /** The internal port. */
  readonly omniPort: number;
  /** Lines that it has written to its log. */
  logLines(): number;
  /** The code with which it has ended; undefined while it runs. */
  exitCode(): number | string | undefined;
}

const built = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
/** How long a node may take to stop before it is ended. */
const stopMs = 15_000;

/** How a node is started. */
export interface NodeOptions {
  /** Folder of the clone whose `dist` is started; this one when left out. */
  readonly build?: string | undefined;
  /** Options of Node.js. */
  readonly execArgv?: readonly string[];
  /** Its log is counted and not shown. */
  readonly hidesLog?: boolean;
}

/** Starts `gatehouse start` with these arguments, on any free port, and resolves once it is ready. */
export async function startGatehouse(
  args: readonly string[],
  { build, execArgv = [], hidesLog = false }: NodeOptions = {},
): Promise<NodeProcess> {
  const main = build === undefined ? built("../../src/main.js") : resolvePath(build, "dist/src/main.js");
  const ports = ["--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0"];
  // What is measured are its own blocks; an older build may not know the word.
  const words = build === undefined ? ["--recover"] : [];
  const child = fork(
    main,
    ["start", ...ports, ...words, "--rate-limit", "0", "--log-level", "warn", "--json", ...args],
    {
      execArgv: ["--import", new URL("report-usage.js", import.meta.url).href, ...execArgv],
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

/** What a bare server answers, by path. */
export type BareAnswers =
  | { readonly kind: "http" | "grpc"; readonly answers: Readonly<Record<string, Uint8Array>> }
  | { readonly kind: "http2"; readonly answers: Readonly<Record<string, ConstantAnswer>> };

/** Starts what a user would serve answers with, by path; `version` is the message of the version, for rpcs. */
export async function startFront(
  kind: FrontKind,
  answers: Readonly<Record<string, Uint8Array>>,
): Promise<ServerProcess> {
  return await startWith("front-server.js", { kind, answers });
}

/** Starts a bare server. */
export async function startBare({ kind, answers }: BareAnswers): Promise<ServerProcess> {
  return await startWith(`bare-${kind}.js`, { answers });
}

/** Starts a script that listens when it is told what to answer. */
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
