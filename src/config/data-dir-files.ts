/**
 * Files of the data directory that commands write for the node: what it is started with where no option names another
 * file, the word of `gatehouse init` that its network is new, and that of `gatehouse restore` that its database is a copy.
 */
import { existsSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { writeNewFile } from "../base/files/private-files.js";

const names = {
  genesis: "genesis.json",
  peers: "peers.json",
  newNetwork: "new-network",
  restored: "restored",
} as const;

/** One of them. */
export type DataDirFile = keyof typeof names;

/** Path of one of them. */
export function pathInDataDir(dataDir: string, file: DataDirFile): string {
  return join(dataDir, names[file]);
}

/** Path of the token for the control port, which the node writes at its start. */
export function controlTokenPath(dataDir: string): string {
  return join(dataDir, "control.token");
}

/** The file that an option names, or that of the data directory; undefined where there is neither. */
export function findFile(dataDir: string, named: string | undefined, file: "genesis" | "peers"): string | undefined {
  const own = pathInDataDir(dataDir, file);
  return named ?? (existsSync(own) ? own : undefined);
}

/**
 * Writes one of them.
 *
 * @returns its path.
 * @throws the system's error, EEXIST when there is such a file: none is overwritten.
 */
export async function writeDataDirFile(dataDir: string, file: DataDirFile, text: string): Promise<string> {
  const path = pathInDataDir(dataDir, file);
  await writeNewFile(path, text);
  return path;
}

/** Whether `gatehouse init` has given the word that the network of this genesis is new. */
export async function isNewNetwork(dataDir: string, genesisHash: string): Promise<boolean> {
  const word = await readFile(pathInDataDir(dataDir, "newNetwork"), "utf8").catch(() => "");
  return word.trim() === genesisHash;
}

/** Takes that word back: there is a block, and whoever loses it must not make another one. */
export async function forgetNewNetwork(dataDir: string): Promise<void> {
  await rm(pathInDataDir(dataDir, "newNetwork"), { force: true });
}

/** Whether `gatehouse restore` made the directory, and nobody has said since which block is the newest. */
export function isRestored(dataDir: string): boolean {
  return existsSync(pathInDataDir(dataDir, "restored"));
}

/** Takes that word back: it is known which block is the newest. */
export async function forgetRestored(dataDir: string): Promise<void> {
  await rm(pathInDataDir(dataDir, "restored"), { force: true });
}
