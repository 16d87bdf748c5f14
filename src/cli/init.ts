/** `gatehouse init`: creates a key, and a genesis with the key as its authority, for the first node of a network. */
import { type Command, Option } from "commander";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { sha256 } from "../base/crypto/hash.js";
import { loadOrCreateNodeKey } from "../base/crypto/node-key.js";
import { optionsByKey } from "../config/options.js";
import { forgetNewNetwork, pathInDataDir, writeDataDirFile } from "../config/data-dir-files.js";
import { ExitError } from "./usage/errors.js";
import { addDataDirFlag } from "./usage/flags.js";
import { printResult } from "./terminal/output.js";

interface Flags {
  readonly dataDir: string;
  readonly name: string;
  readonly followers: "open" | "listed";
  readonly json?: boolean;
}

export function addInit(command: Command): void {
  addDataDirFlag(command, "Data directory of the node.")
    .option("--name <NAME>", "Display name of the network.", "gatehouse")
    .addOption(
      new Option("--followers <WHO>", "Nodes that may follow the chain and read its private programs.")
        .choices(["open", "listed"])
        .default("listed"),
    )
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
Writes identity.key (unless it exists), genesis.json, and new-network, a marker
that block 1 removes. A node that starts with this data directory uses them
without further options. The genesis cannot be changed afterwards: its hash
identifies the network.

The genesis states which nodes may follow: those that operators add with
gatehouse peers add URL --identity KEY, or every node with --followers open.

Examples:
  gatehouse init --data-dir data/one
  gatehouse start --data-dir data/one
  gatehouse init --name mine --json`,
    )
    .action(async (flags: Flags) => {
      const network = await createNetwork(resolve(flags.dataDir), flags);
      const { genesisHash, publicKey, followers, genesis } = network;
      const shownFollowers = {
        open: "open: every node",
        listed: "listed: the nodes that operators add with gatehouse peers add URL --identity KEY",
      };
      printResult(flags, network, () => [
        `network    ${genesisHash}`,
        `authority  ${publicKey}`,
        `followers  ${shownFollowers[followers]}`,
        `written    ${genesis}`,
        "",
        `Start it:  gatehouse start --data-dir ${flags.dataDir}`,
        `Join it:   gatehouse join http://HOST:${optionsByKey.rpcPort.fallback}   (on another machine)`,
      ]);
    });
}

async function createNetwork(dataDir: string, { name, followers }: Flags) {
  const genesis = pathInDataDir(dataDir, "genesis");
  if (existsSync(genesis)) {
    throw new ExitError(
      `${dataDir} already has a network (${genesis}); give another --data-dir to create another network.`,
    );
  }
  try {
    const { publicKey } = await loadOrCreateNodeKey(dataDir);
    const content = {
      ...{ name, timestamp: Date.now(), authorities: [publicKey] },
      // With an empty list only the authority may follow; without a list every node may.
      ...(followers === "listed" && { followers: [] }),
    };
    const text = `${JSON.stringify(content, null, 2)}\n`;
    const genesisHash = sha256(text);
    // Remove the marker that an interrupted run left without its genesis.
    await forgetNewNetwork(dataDir);
    await writeDataDirFile(dataDir, "newNetwork", `${genesisHash}\n`);
    await writeDataDirFile(dataDir, "genesis", text);
    return { genesisHash, publicKey, followers, genesis };
  } catch (error) {
    throw new ExitError(`The network cannot be created in ${dataDir}: ${(error as Error).message}.`);
  }
}
