/** Implementation of `gatehouse light`. */
import { resolve } from "node:path";
import { createLogging } from "../../base/logging/log.js";
import type { LogLevelName } from "../../base/logging/log-levels.js";
import { type LightNode, startLight } from "../../light/light-node.js";
import { paint, print } from "../terminal/output.js";
import { ExitError, exitCodes } from "../usage/errors.js";
import { checkUrl, parseGenesisHash } from "../usage/values.js";
import { runUntilSignal } from "./signals.js";

/** Flags of the command. */
export interface LightFlags {
  readonly trust: string;
  readonly port: number;
  readonly dataDir: string;
  readonly maxAge?: number;
  readonly logLevel: LogLevelName;
  readonly json?: boolean;
}

/** Serves proved responses until a signal arrives. */
export async function runLight(urls: readonly string[], flags: LightFlags): Promise<void> {
  const genesisHash = parseGenesisHash("--trust", flags.trust);
  urls.forEach((url) => checkUrl("A node", url));
  const { port, dataDir, maxAge: maxAgeS, logLevel: level, json = false } = flags;
  const { log } = createLogging({ level, json });
  await runUntilSignal(async () => {
    const options = { urls, genesisHash, dir: resolve(dataDir), port, maxAgeS, log };
    const light = await startLight(options).catch((error: unknown) => {
      throw toListenError(error, port);
    });
    print(...(json ? [readyEvent(light)] : panel(light, genesisHash)));
    return () => light.stop();
  });
}

/** Converts an error of the port to an error with a remedy. Returns other errors unchanged. */
function toListenError(error: unknown, port: number): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case "EADDRINUSE":
      return new ExitError(`Port ${port} is taken; choose another --port.`, exitCodes.failed);
    case "EACCES":
    case "ERR_SOCKET_BAD_PORT":
      return new ExitError(`Port ${port} cannot be bound: ${message}; choose another --port.`, exitCodes.usage);
    default:
      return error;
  }
}

function readyEvent({ url, port, block }: LightNode): string {
  const number = block();
  const ports = { rpc: port };
  return JSON.stringify({
    event: "ready",
    role: "light",
    rpc: url,
    ports,
    block: number === undefined ? null : Number(number),
  });
}

function panel({ url, block }: LightNode, genesisHash: string): string[] {
  const number = block();
  return [
    "",
    `  ${paint("bold", "Gatehouse light")}`,
    `  ${url}   HTTP, proved responses only`,
    `  network ${genesisHash}`,
    number === undefined
      ? `  ${paint("yellow", "No node has proved a block yet; see the log for the reason.")}`
      : `  block ${number}`,
    "",
    `  ${paint("dim", "Ctrl-C stops it.")}`,
    "",
  ];
}
