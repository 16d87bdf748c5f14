/** Talking to a node over its control service, for the commands of its operator. */
import { Code, ConnectError, type Interceptor, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { Command } from "commander";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { resolve } from "node:path";
import { fallbackOf } from "../config/declare.js";
import { optionsByKey } from "../config/options.js";
import { ExitError } from "./output.js";

/** The flags that say which node. */
export interface ControlFlags {
  readonly dataDir: string;
  readonly control?: string;
}

const timeoutMs = 10_000;

/** Adds `--data-dir` and `--control` to a command. */
export function addControlFlags(command: Command): Command {
  return command
    .addOption(
      command
        .createOption("--data-dir <DIR>", "Data directory of the node.")
        .env(optionsByKey.dataDir.env)
        .default(optionsByKey.dataDir.fallback),
    )
    .addOption(
      command
        .createOption(
          "--control <ADDRESS>",
          "Its control service: a socket's path, or host:port; made from --data-dir.",
        )
        .env("GATEHOUSE_CONTROL"),
    );
}

/**
 * Does some work with the control service of a node.
 *
 * @throws ExitError with code 1 and the node's own sentence when it refuses, with code 3 when it cannot be reached.
 */
export async function withControl<T>(flags: ControlFlags, work: (transport: Transport) => Promise<T>): Promise<T> {
  const address = flags.control ?? fallbackOf(optionsByKey.controlSocket, () => flags.dataDir)!;
  const isPort = /^[^/]*:\d+$/.test(address);
  try {
    return await work(isPort ? await overPort(address, flags.dataDir) : overSocket(resolve(address)));
  } catch (error) {
    if (!(error instanceof ConnectError)) {
      throw error;
    }
    if (isUnreachable(error)) {
      throw new ExitError(
        `No node answers at ${address}: ${error.rawMessage}. Name its --data-dir; the node must run on this machine.`,
        3,
      );
    }
    throw new ExitError(`The node refuses: ${error.rawMessage}`, 1);
  }
}

/** No answer of a node: those of its own carry details. */
function isUnreachable({ code, cause, details }: ConnectError): boolean {
  return details.length === 0 && (code === Code.Unavailable || (cause instanceof Error && "errno" in cause));
}

function overSocket(path: string): Transport {
  return createGrpcTransport({
    baseUrl: "http://localhost",
    defaultTimeoutMs: timeoutMs,
    nodeOptions: { createConnection: () => connect(path) },
  });
}

async function overPort(address: string, dataDir: string): Promise<Transport> {
  // Loaded here, since it takes longer than most commands do.
  const { controlTokenPath } = await import("../node/control.js");
  const path = controlTokenPath(dataDir);
  const token = await readFile(path, "utf8").catch(() => {
    throw new ExitError(`The token ${path} cannot be read; name the node's --data-dir.`, 2);
  });
  const authorize: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${token.trim()}`);
    return next(request);
  };
  return createGrpcTransport({ baseUrl: `http://${address}`, defaultTimeoutMs: timeoutMs, interceptors: [authorize] });
}
