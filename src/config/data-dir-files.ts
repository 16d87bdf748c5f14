/**
 * Files in the data directory that commands write for the node:
 *
 * - the genesis and the peers, used if no option names another file
 * - the marker of `gatehouse init` that the network is new
 * - the marker of `gatehouse restore` that the database is a copy
 */
import { existsSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { privateFileMode, publicFileMode, writeNewFile } from "../base/files/private-files.js";

const fileNames = {
  genesis: "genesis.json",
  peers: "peers.json",
  newNetwork: "new-network",
  restored: "restored",
} as const;

type DataDirFile = keyof typeof fileNames;

/** Files without secrets. Another user, such as that of a container, may run the node with a copy or a mount of them. */
const publicFiles: ReadonlySet<DataDirFile> = new Set(["genesis", "peers"]);

export function pathInDataDir(dataDir: string, file: DataDirFile): string {
  return join(dataDir, fileNames[file]);
}

/** Returns the path of the control port token, which the node writes when it starts. */
export function controlTokenPath(dataDir: string): string {
  return join(dataDir, "control.token");
}

/** Returns the path that an option names, or else that of the file in the data directory, if the file exists. */
export function findFile(
  dataDir: string,
  configured: string | undefined,
  file: "genesis" | "peers",
): string | undefined {
  const path = pathInDataDir(dataDir, file);
  return configured ?? (existsSync(path) ? path : undefined);
}

/**
 * Writes a file of the data directory. All users can read the genesis and the peers. Throws the system error; EEXIST if
 * the file exists, since no file is overwritten.
 */
export async function writeDataDirFile(dataDir: string, file: DataDirFile, text: string): Promise<string> {
  const path = pathInDataDir(dataDir, file);
  await writeNewFile(path, text, publicFiles.has(file) ? publicFileMode : privateFileMode);
  return path;
}

/** Returns true if `gatehouse init` marked the network of this genesis as new. */
export async function isNewNetwork(dataDir: string, genesisHash: string): Promise<boolean> {
  const text = await readFile(pathInDataDir(dataDir, "newNetwork"), "utf8").catch(() => "");
  return text.trim() === genesisHash;
}

/** Removes the new-network marker. Block 1 exists, and a node that loses this block must not produce another one. */
export async function forgetNewNetwork(dataDir: string): Promise<void> {
  await rm(pathInDataDir(dataDir, "newNetwork"), { force: true });
}

/** Returns true if `gatehouse restore` created the directory and the node has not yet learned the latest block. */
export function isRestored(dataDir: string): boolean {
  return existsSync(pathInDataDir(dataDir, "restored"));
}

/** Removes the restored marker once the node knows the latest block. */
export async function forgetRestored(dataDir: string): Promise<void> {
  await rm(pathInDataDir(dataDir, "restored"), { force: true });
}
