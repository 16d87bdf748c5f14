/** The genesis: a JSON file that becomes block 0 once, and that names the network by its hash. */
import { readFile, stat } from "node:fs/promises";
import { z } from "zod";
import { hex32, sha256 } from "../base/hash.js";
import type { ChainHead, ChainStore } from "./store.js";

/** The genesis that block 0 holds. */
export interface Genesis {
  /** The text of the file. */
  readonly text: string;
  /** Hash of block 0: 0x and SHA-256 of the text in UTF-8. */
  readonly hash: string;
  /** Public keys that may make blocks: 0x and 64 lower-case hex digits each. */
  readonly authorities: readonly string[];
  /** Time of block 0 in milliseconds since the epoch. */
  readonly timestampMs: number;
}

const maxBytes = 16 * 1024 * 1024;

const genesisFile = z.looseObject({
  name: z.string().optional(),
  timestamp: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
  authorities: z.array(z.string().regex(hex32)).optional(),
});

/**
 * Puts the file into block 0 if there is no block 0 yet, and gives the genesis of block 0.
 *
 * @param path the genesis file; undefined to go on with what block 0 holds, if anything.
 * @throws Error with one sentence when the file cannot be used, or is not the one that block 0 was made of.
 */
export async function adoptGenesis(store: ChainStore, path: string | undefined): Promise<Genesis | undefined> {
  const stored = await store.genesisText();
  const known = stored === undefined ? undefined : parseGenesis("stored in block 0", stored);
  if (path === undefined) {
    return known;
  }
  const given = parseGenesis(path, await readText(path));
  if (known !== undefined) {
    if (known.hash !== given.hash) {
      throw new Error(
        `The genesis file ${path} (${given.hash}) is not the one that this database was started with (${known.hash}); ` +
          "name that file again, or another --data-dir for another network.",
      );
    }
    return known;
  }
  await store.insertGenesis(given);
  return given;
}

/**
 * Checks that block 0 has the hash of the genesis that it holds, and gives the newest block.
 *
 * @throws Error when it has not: the database was changed by something else than a node.
 */
export async function verifyStoredChain(store: ChainStore, genesis: Genesis): Promise<ChainHead> {
  const head = await store.head();
  if (head?.genesisHash !== genesis.hash) {
    throw new Error("Block 0 in the database does not have the hash of the genesis that it holds.");
  }
  return head;
}

async function readText(path: string): Promise<string> {
  let bytes: Buffer;
  try {
    const { size } = await stat(path);
    if (size > maxBytes) {
      throw new Error(`it is larger than ${maxBytes} bytes`);
    }
    bytes = await readFile(path);
  } catch (error) {
    throw new Error(`The genesis file ${path} cannot be read: ${(error as Error).message}.`);
  }
  const text = bytes.toString("utf8");
  if (!Buffer.from(text, "utf8").equals(bytes) || text.includes("\0")) {
    throw new Error(`The genesis file ${path} is not UTF-8 text.`);
  }
  return text;
}

function parseGenesis(path: string, text: string): Genesis {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new Error(`The genesis file ${path} is not JSON: ${(error as Error).message}.`);
  }
  const parsed = genesisFile.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const place = issue?.path.join(".") ?? "";
    throw new Error(
      `The genesis file ${path} is not usable${place === "" ? "" : ` at ${place}`}: ${issue?.message ?? "wrong shape"}.`,
    );
  }
  const { authorities = [], timestamp = 0 } = parsed.data;
  return { text, hash: sha256(text), authorities, timestampMs: timestamp };
}
