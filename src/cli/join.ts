/**
 * `gatehouse join`: downloads the genesis of a network from one of its nodes, for a node that will follow the network.
 */
import type { Command } from "commander";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { hex32, sha256 } from "../base/crypto/hash.js";
import { loadOrCreateNodeKey } from "../base/crypto/node-key.js";
import { parseGenesis } from "../chain/blocks/genesis.js";
import { optionsByKey } from "../config/options.js";
import { pathInDataDir, writeDataDirFile } from "../config/data-dir-files.js";
import { askSuccessfully } from "./calls/ask-node.js";
import { ExitError, exitCodes } from "./usage/errors.js";
import { print } from "./terminal/output.js";

interface Flags {
  readonly dataDir: string;
  readonly genesisHash?: string;
  readonly peer?: string;
  readonly yes?: boolean;
  readonly json?: boolean;
}

/** Network of a node, as the node reports it. */
interface Network {
  readonly genesisHash: string;
  /** Exact text of the genesis. */
  readonly genesis: string;
  /** URL at which other nodes reach the node. */
  readonly peer: string;
}

export function addJoin(command: Command): void {
  command
    .argument("<URL>")
    .option("--data-dir <DIR>", "Data directory of the node that will join.", optionsByKey.dataDir.fallback)
    .option("--genesis-hash <HASH>", "Join only the network of this genesis, and do not ask.")
    .option("--peer <URL>", "Where nodes reach that node, where it is not the internal port that it names.")
    .option("--yes", "Believe the node, and do not ask.")
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
The hash of the genesis names the network, and is pinned: whoever gives you
another genesis gives you another network. Compare it with what its operator
tells you by another way. Writes identity.key, unless there is one, genesis.json
and peers.json; a node that is started with this data directory takes them
without being told.

Examples:
  gatehouse join https://node.example.org --data-dir data/two
  gatehouse start --data-dir data/two
  gatehouse join http://10.0.0.1:53550 --genesis-hash 0x… --json`,
    )
    .action(async (url: string, flags: Flags) => {
      if (flags.genesisHash !== undefined && !hex32.test(flags.genesisHash)) {
        throw new ExitError("--genesis-hash is 0x and 64 lower-case hex digits.", exitCodes.usage);
      }
      const dataDir = resolve(flags.dataDir);
      for (const file of ["genesis", "peers"] as const) {
        const path = pathInDataDir(dataDir, file);
        if (existsSync(path)) {
          throw new ExitError(
            `There is a network in ${dataDir} already (${path}); name another --data-dir.`,
            exitCodes.failed,
          );
        }
      }
      const network = await askNetwork(url, flags.peer);
      await confirm(network, url, flags);
      const { authorities, followers } = parseGenesis(`of ${url}`, network.genesis);
      const publicKey = await join(dataDir, network);
      const mustBeNamed = followers !== undefined && ![...authorities, ...followers].includes(publicKey);
      const { genesisHash, peer } = network;
      if (flags.json === true) {
        print(JSON.stringify({ genesisHash, peer, publicKey }));
        return;
      }
      print(
        `network  ${genesisHash}`,
        `peer     ${peer}`,
        `node     ${publicKey}`,
        "",
        ...(mustBeNamed
          ? [
              `Name it:   gatehouse peers add URL --identity ${publicKey}   (on that node, URL of this one's internal port)`,
            ]
          : []),
        `Start it:  gatehouse start --data-dir ${flags.dataDir}`,
      );
    });
}

/** Queries the network of a node. The response is not trusted: the operator must compare the hash. */
async function askNetwork(url: string, given: string | undefined): Promise<Network> {
  const { genesisHash } = JSON.parse(await askSuccessfully(url, "/chain/head")) as { readonly genesisHash: string };
  const genesis = await askSuccessfully(url, "/genesis");
  if (sha256(genesis) !== genesisHash) {
    throw new ExitError(
      `The genesis that ${url} gives is not the one that it names (${genesisHash}).`,
      exitCodes.failed,
    );
  }
  if (given !== undefined) {
    return { genesisHash, genesis, peer: given };
  }
  const { ports } = JSON.parse(await askSuccessfully(url, "/health")) as {
    readonly ports?: { readonly omni?: { readonly actual?: number | null } };
  };
  const port = ports?.omni?.actual;
  if (typeof port !== "number") {
    throw new ExitError(
      `${url} does not tell its internal port; name it with --peer https://HOST:PORT.`,
      exitCodes.failed,
    );
  }
  return { genesisHash, genesis, peer: `https://${new URL(url).hostname}:${port}` };
}

/**
 * Confirms the network with the operator.
 *
 * @throws ExitError if the network is not the intended one.
 */
async function confirm({ genesisHash, genesis }: Network, url: string, flags: Flags): Promise<void> {
  if (flags.genesisHash !== undefined) {
    if (flags.genesisHash !== genesisHash) {
      throw new ExitError(
        `The network of ${url} is ${genesisHash}, and not the one that --genesis-hash names.`,
        exitCodes.failed,
      );
    }
    return;
  }
  if (flags.yes === true) {
    return;
  }
  if (!process.stdin.isTTY || flags.json === true) {
    throw new ExitError(
      `The network of ${url} is ${genesisHash}. Say that you mean it, by --genesis-hash ${genesisHash}, or by --yes.`,
      exitCodes.usage,
    );
  }
  const { name = "without a name" } = JSON.parse(genesis) as { readonly name?: string };
  const { createInterface } = await import("node:readline/promises");
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await asking.question(`${url} is of the network "${name}"\n  ${genesisHash}\nJoin it? [y/N] `);
    if (!/^y(es)?$/i.test(answer.trim())) {
      throw new ExitError("Nothing was written.", exitCodes.failed);
    }
  } finally {
    asking.close();
  }
}

async function join(dataDir: string, { genesis, peer }: Network): Promise<string> {
  try {
    const { publicKey } = await loadOrCreateNodeKey(dataDir);
    await writeDataDirFile(dataDir, "peers", `${JSON.stringify([{ url: peer }], null, 2)}\n`);
    await writeDataDirFile(dataDir, "genesis", genesis);
    return publicKey;
  } catch (error) {
    throw new ExitError(`The network cannot be joined in ${dataDir}: ${(error as Error).message}.`, exitCodes.failed);
  }
}
