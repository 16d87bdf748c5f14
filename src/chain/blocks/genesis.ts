/** The genesis: a text of JSON that becomes block 0 once, and that names the network by its hash. */
import { z } from "zod";
import { isStrongKey } from "../../base/crypto/key-validation.js";
import { hex32, sha256 } from "../../base/crypto/hash.js";
import { InputError } from "../../base/errors/start-error.js";
import type { Blocks, ChainHead, ChainStore } from "./store.js";

/** The genesis that block 0 holds. */
export interface Genesis {
  /** As it was written. */
  readonly text: string;
  /** Hash of block 0: 0x and SHA-256 of the text in UTF-8. */
  readonly hash: string;
  /** Public keys that may make blocks: 0x and 64 lower-case hex digits each. */
  readonly authorities: readonly string[];
  /**
   * Public keys of further nodes that may follow where followers are listed, in the same form. Undefined where the genesis
   * does not say who may follow.
   */
  readonly followers: readonly string[] | undefined;
  /** Public keys that may write where only listed ones may, beside the authorities. */
  readonly writers: readonly string[];
  /** Time of block 0 in milliseconds since the epoch. */
  readonly timestampMs: number;
}

const keys = z.array(
  z
    .string()
    .regex(hex32)
    .refine(isStrongKey, "it is a key that anybody can sign for, of small order or not written as keys are"),
);

const genesisFile = z.looseObject({
  name: z.string().optional(),
  timestamp: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
  authorities: keys.optional(),
  followers: keys.optional(),
  writers: keys.optional(),
});

/**
 * Puts the text into block 0 if there is no block 0 yet, and gives the genesis of block 0.
 *
 * @param file the genesis file; undefined to go on with what block 0 holds, if anything.
 * @throws Error with one sentence when the text cannot be used, or is not the one that block 0 was made of.
 */
export async function adoptGenesis(
  store: ChainStore,
  file: { readonly path: string; readonly text: string } | undefined,
): Promise<Genesis | undefined> {
  const known = await readStoredGenesis(store);
  if (file === undefined) {
    return known;
  }
  const given = parseGenesis(file.path, file.text);
  if (known !== undefined) {
    if (known.hash !== given.hash) {
      throw new Error(
        `The genesis file ${file.path} (${given.hash}) is not the one that this database was started with (${known.hash}); ` +
          "name that file again, or another --data-dir for another network.",
      );
    }
    return known;
  }
  await store.insertGenesis(given);
  return given;
}

/**
 * The genesis of block 0; undefined where there is none.
 *
 * @throws Error with one sentence when it cannot be used.
 */
export async function readStoredGenesis(store: Pick<Blocks, "genesisText">): Promise<Genesis | undefined> {
  const stored = await store.genesisText();
  if (stored === undefined) {
    return undefined;
  }
  return parseGenesis("stored in block 0", stored);
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

/**
 * What a text says that is to be a genesis.
 *
 * @param path for messages.
 * @throws InputError when it is none.
 */
export function parseGenesis(path: string, text: string): Genesis {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new InputError(`The genesis file ${path} is not JSON: ${(error as Error).message}.`);
  }
  const parsed = genesisFile.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const place = issue?.path.join(".") ?? "";
    throw new InputError(
      `The genesis file ${path} is not usable${place === "" ? "" : ` at ${place}`}: ${issue?.message ?? "wrong shape"}.`,
    );
  }
  const { authorities = [], followers, writers = [], timestamp = 0 } = parsed.data;
  return { text, hash: sha256(text), authorities, followers, writers, timestampMs: timestamp };
}
