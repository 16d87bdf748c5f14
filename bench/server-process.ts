/** Servers in processes of their own: the node as it is shipped, and the bare baselines. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Usage } from "./report-usage.js";

/** A server under load. */
export interface ServerProcess {
  readonly port: number;
  /** The internal port of a node. */
  readonly omniPort?: number;
  usage(): Promise<Usage>;
  stop(): Promise<void>;
}

const built = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Starts `gatehouse start` with these arguments, on any free port, and resolves once it is ready. */
export async function startGatehouse(args: readonly string[]): Promise<ServerProcess> {
  const child = fork(
    built("../src/main.js"),
    [
      "start",
      "--host",
      "127.0.0.1",
      "--rpc-port",
      "0",
      "--omni-port",
      "0",
      "--rate-limit",
      "0",
      "--log-level",
      "warn",
      "--json",
      ...args,
    ],
    {
      execArgv: ["--import", new URL("report-usage.js", import.meta.url).href],
      stdio: ["ignore", "pipe", "inherit", "ipc"],
    },
  );
  const line = await firstLine(child);
  const { ports } = JSON.parse(line) as { readonly ports: { readonly rpc: number; readonly omni: number } };
  return { ...handle(child, ports.rpc), omniPort: ports.omni };
}

/** Starts a bare server that answers each key with its bytes. */
export async function startBare(
  kind: "http" | "grpc",
  answers: Readonly<Record<string, Uint8Array>>,
): Promise<ServerProcess> {
  const child = fork(built(`bare-${kind}.js`), {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    serialization: "advanced",
  });
  child.send({ answers });
  const { port } = await reply<{ readonly port: number }>(child, "port");
  return handle(child, port);
}

function handle(child: ChildProcess, port: number): ServerProcess {
  return {
    port,
    async usage() {
      child.send("usage");
      return (await reply<{ readonly usage: Usage }>(child, "usage")).usage;
    },
    async stop() {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
    },
  };
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
    const onMessage = (message: unknown): void => {
      if (typeof message === "object" && message !== null && key in message) {
        child.off("message", onMessage).off("exit", onExit);
        resolve(message as T);
      }
    };
    child.on("message", onMessage).once("exit", onExit);
  });
}
