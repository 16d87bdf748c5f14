/**
 * `gatehouse join`: downloads the genesis of a network from one of its nodes, for a node that will follow the network.
 */
import type { Command } from "commander";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { hex32, sha256 } from "../base/crypto/hash.js";
import { InputError } from "../base/errors/start-error.js";
import { loadOrCreateNodeKey } from "../base/crypto/node-key.js";
import { parseGenesis } from "../chain/blocks/genesis.js";
import { optionsByKey } from "../config/options.js";
import { pathInDataDir, writeDataDirFile } from "../config/data-dir-files.js";
import { requestOk } from "./calls/request-node.js";
import { ExitError } from "./usage/errors.js";
import { addDataDirFlag, addTrustFlags, checkUrl } from "./usage/flags.js";
import { printResult } from "./terminal/output.js";

interface Flags {
  readonly dataDir: string;
  readonly genesisHash?: string;
  readonly peer?: string;
  readonly yes?: boolean;
  readonly json?: boolean;
}

interface Network {
  readonly genesisHash: string;
  readonly genesis: string;
  /** URL at which other nodes reach the node. */
  readonly peer: string;
}

export function addJoin(command: Command): void {
  addDataDirFlag(addTrustFlags(command.argument("<URL>")), "Data directory of the joining node.")
    .option("--genesis-hash <HASH>", "Join only the network with this genesis hash, without confirmation.")
    .option("--peer <URL>", "Address at which nodes reach that node. Default: the internal port that it reports.")
    .option("--yes", "Trust the node's genesis, without confirmation.")
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
The hash of the genesis identifies the network, and is pinned: another genesis
is another network. Compare the hash with one that its operator gives you over
a channel you trust. Writes identity.key (unless it exists), genesis.json and
peers.json. A node that starts with this data directory uses them without
further options.

Examples:
  gatehouse join https://node.example.org --data-dir data/two
  gatehouse start --data-dir data/two
  gatehouse join http://10.0.0.1:53550 --genesis-hash 0x… --json`,
    )
    .action(async (url: string, flags: Flags) => {
      checkUrl("The address of the node", url);
      if (flags.genesisHash !== undefined && !hex32.test(flags.genesisHash)) {
        throw new InputError("--genesis-hash must be 0x and 64 lower-case hex digits.");
      }
      const dataDir = resolve(flags.dataDir);
      for (const file of ["genesis", "peers"] as const) {
        const path = pathInDataDir(dataDir, file);
        if (existsSync(path)) {
          throw new ExitError(`${dataDir} already has a network (${path}); give another --data-dir.`);
        }
      }
      const network = await fetchNetwork(url, flags.peer);
      await confirm(network, url, flags);
      const { authorities, followers } = parseGenesis(`of ${url}`, network.genesis);
      const publicKey = await writeFiles(dataDir, network);
      const mustBeAdded = followers !== undefined && ![...authorities, ...followers].includes(publicKey);
      const { genesisHash, peer } = network;
      const add =
        `gatehouse peers add https://HOST:${optionsByKey.omniPort.fallback} --identity ${publicKey} --data-dir DIR   ` +
        "(on that node, with its directory; HOST is this machine)";
      printResult(flags, { genesisHash, peer, publicKey }, () => [
        `network  ${genesisHash}`,
        `peer     ${peer}`,
        `node     ${publicKey}`,
        "",
        ...(mustBeAdded ? [`Add it:    ${add}`] : []),
        `Start it:  gatehouse start --data-dir ${flags.dataDir}`,
      ]);
    });
}

/** Queries the network of a node. The response is not trusted: the operator must compare the hash. */
async function fetchNetwork(url: string, peer: string | undefined): Promise<Network> {
  const { genesisHash } = JSON.parse(await requestOk(url, "/chain/head")) as { readonly genesisHash: string };
  const genesis = await requestOk(url, "/genesis");
  if (sha256(genesis) !== genesisHash) {
    throw new ExitError(
      `${url} returned a genesis with another hash than it reports (${genesisHash}); join through another node.`,
    );
  }
  return { genesisHash, genesis, peer: peer ?? (await fetchPeerUrl(url)) };
}

async function fetchPeerUrl(url: string): Promise<string> {
  const { ports } = JSON.parse(await requestOk(url, "/health")) as {
    readonly ports?: { readonly omni?: { readonly actual?: number | null } };
  };
  const port = ports?.omni?.actual;
  if (typeof port !== "number") {
    throw new ExitError(`${url} does not report its internal port; give it with --peer https://HOST:PORT.`);
  }
  return `https://${new URL(url).hostname}:${port}`;
}

/** Confirms the network with the operator. Throws an error if it is not the intended one. */
async function confirm({ genesisHash, genesis }: Network, url: string, flags: Flags): Promise<void> {
  if (flags.genesisHash !== undefined && flags.genesisHash !== genesisHash) {
    throw new ExitError(
      `The network of ${url} is ${genesisHash}, which differs from --genesis-hash; give another URL or hash.`,
    );
  }
  if (flags.genesisHash !== undefined || flags.yes === true) {
    return;
  }
  if (!process.stdin.isTTY || flags.json === true) {
    throw new InputError(
      `The network of ${url} is ${genesisHash}. Confirm it with --genesis-hash ${genesisHash}, or with --yes.`,
    );
  }
  const { name = "without a name" } = JSON.parse(genesis) as { readonly name?: string };
  const { createInterface } = await import("node:readline/promises");
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const reply = await terminal.question(`${url} belongs to the network "${name}"\n  ${genesisHash}\nJoin it? [y/N] `);
    if (!/^y(es)?$/i.test(reply.trim())) {
      throw new ExitError("Canceled; no files were written.");
    }
  } finally {
    terminal.close();
  }
}

/** Writes the peers and the genesis, and creates the key unless it exists. Returns the public key. */
async function writeFiles(dataDir: string, { genesis, peer }: Network): Promise<string> {
  try {
    const { publicKey } = await loadOrCreateNodeKey(dataDir);
    await writeDataDirFile(dataDir, "peers", `${JSON.stringify([{ url: peer }], null, 2)}\n`);
    await writeDataDirFile(dataDir, "genesis", genesis);
    return publicKey;
  } catch (error) {
    throw new ExitError(`The network cannot be joined in ${dataDir}: ${(error as Error).message}.`);
  }
}
