/** `gatehouse light`: serves proved responses on a local port. */
import { type Command, Option } from "commander";
import { resolve } from "node:path";
import { InputError } from "../../base/errors/start-error.js";
import { type LogLevelName, logLevels } from "../../base/logging/log-levels.js";
import type { LightNode } from "../../light/light-node.js";
import { tlsTrust } from "../calls/authorities.js";
import { paint, printResult } from "../terminal/output.js";
import { ExitError } from "../usage/errors.js";
import { parseGenesisHash } from "../transactions/caller.js";
import { addTrustFlags, checkUrl, numberBetween, parseInteger } from "../usage/flags.js";
import { runUntilSignal } from "./signals.js";

interface Flags {
  readonly genesisHash: string;
  readonly port: number;
  readonly dataDir: string;
  readonly maxAge?: number;
  readonly logLevel: LogLevelName;
  readonly json?: boolean;
}

export function addLight(command: Command): void {
  addTrustFlags(
    command.argument(
      "<URL...>",
      "Nodes to query, in this order: if one fails or sends a false proof, the next is queried.",
    ),
  )
    .requiredOption("--trust, --genesis-hash <HASH>", "Genesis hash of the network to trust.")
    .option("--port <PORT>", "Port of 127.0.0.1 to listen on; 0 for any free port.", numberBetween(0, 65_535), 53_580)
    .option("--data-dir <DIR>", "Directory that stores the latest proved block.", "data/light")
    .option(
      "--max-age <SECONDS>",
      "Reject proofs whose latest authority timestamp is older than this. Default: 120.",
      parseInteger,
    )
    .addOption(
      new Option("--log-level <LEVEL>", "Log level; the log goes to stderr.").choices([...logLevels]).default("info"),
    )
    .option("--json", "Print a ready event, and log as JSON.")
    .addHelpText(
      "after",
      `
Clients without support for proofs read storage programs, nullifiers, the commitment tree and blocks from this port over
plain HTTP, as from a node. The light node verifies the proof of each response first. Requests without a proof, such as
lists, searches and health, get status 501. Read private programs with gatehouse storage get --verify.

A node that sends a false proof is logged and not queried for ten minutes. If an authority signs two blocks with the same
number (a fork), both are stored in the data directory, and all requests fail until you remove that file.

Example:
  gatehouse light --genesis-hash 0x… https://node-one.example.org https://node-two.example.org`,
    )
    .action(runLight);
}

async function runLight(urls: readonly string[], flags: Flags): Promise<void> {
  const genesisHash = parseGenesisHash("--genesis-hash", flags.genesisHash);
  urls.forEach((url) => checkUrl("A node", url));
  const { port, dataDir, maxAge: maxAgeS, logLevel: level, json = false } = flags;
  const [{ createLogging }, { startLight }] = await Promise.all([
    import("../../base/logging/log.js"),
    import("../../light/light-node.js"),
  ]);
  const { log } = createLogging({ level, json });
  await runUntilSignal(async () => {
    const options = { urls, genesisHash, dir: resolve(dataDir), port, maxAgeS, log, tls: await tlsTrust() };
    const light = await startLight(options).catch((error: unknown) => {
      throw toListenError(error, port);
    });
    const number = light.block();
    const block = number === undefined ? null : Number(number);
    const event = { event: "ready", role: "light", rpc: light.url, ports: { rpc: light.port }, block };
    printResult(flags, event, () => panel(light, genesisHash));
    return light;
  });
}

/** Converts an error of the port to an error with a remedy. Returns other errors unchanged. */
function toListenError(error: unknown, port: number): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case "EADDRINUSE":
      return new ExitError(`Port ${port} is taken; choose another --port.`);
    case "EACCES":
    case "ERR_SOCKET_BAD_PORT":
      return new InputError(`Port ${port} cannot be bound: ${message}; choose another --port.`);
    default:
      return error;
  }
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
