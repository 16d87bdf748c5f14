/** Genesis: JSON text that becomes block 0; its hash identifies the network. */
import { z } from "zod";
import { isStrongKey } from "../../base/crypto/key-validation.js";
import { hex32, sha256 } from "../../base/crypto/hash.js";
import { InputError } from "../../base/errors/start-error.js";
import { describeJsonError } from "../../base/text/parse-json.js";
import type { ChainStore } from "./store.js";
import type { ChainHead } from "./store-types.js";

/** Decoded genesis of block 0. */
export interface Genesis {
  /** Original JSON text. */
  readonly text: string;
  /** Hash of block 0: 0x and SHA-256 of the text in UTF-8. */
  readonly hash: string;
  /** Public keys that may produce blocks: 0x and 64 lower-case hex digits each. */
  readonly authorities: readonly string[];
  /**
   * Public keys of nodes, besides the authorities, that may follow if only listed nodes may, in the same form.
   * Undefined if the genesis does not list followers; then all nodes may follow by default.
   */
  readonly followers: readonly string[] | undefined;
  /** Public keys, besides the authorities, that may write if only listed keys may. */
  readonly writers: readonly string[];
  /** Timestamp of block 0 in milliseconds since the epoch. */
  readonly timestampMs: number;
}

const keys = z.array(
  z
    .string()
    .regex(hex32)
    .refine(isStrongKey, "the key is of small order, or not in canonical form, so anyone could sign for it"),
);

const genesisFile = z.looseObject({
  name: z.string().optional(),
  timestamp: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
  authorities: keys.optional(),
  followers: keys.optional(),
  writers: keys.optional(),
});

/**
 * Stores the text as block 0 if there is none yet; returns the genesis of block 0.
 *
 * @param file the genesis file; undefined to use the stored block 0, if there is one.
 * @throws Error with a message for the operator if the text is invalid or differs from the text of block 0.
 */
export async function adoptGenesis(
  store: ChainStore,
  file: { readonly path: string; readonly text: string } | undefined,
): Promise<Genesis | undefined> {
  const stored = await readStoredGenesis(store);
  if (file === undefined) {
    return stored;
  }
  const genesis = parseGenesis(file.path, file.text);
  if (stored !== undefined) {
    if (stored.hash !== genesis.hash) {
      throw new Error(
        `The genesis file ${file.path} (${genesis.hash}) is not the one that this database was started with (${stored.hash}); ` +
          "name that file again, or another --data-dir for another network.",
      );
    }
    return stored;
  }
  await store.insertGenesis(genesis);
  return genesis;
}

/**
 * Returns the genesis of block 0; undefined if there is no block 0.
 *
 * @throws Error with a message for the operator if the stored genesis is invalid.
 */
export async function readStoredGenesis(store: Pick<ChainStore, "genesisText">): Promise<Genesis | undefined> {
  const text = await store.genesisText();
  return text === undefined ? undefined : parseGenesis("stored in block 0", text);
}

/**
 * Checks that block 0 has the hash of its genesis text; returns the latest block.
 *
 * @throws Error if the hash differs, that is, if something other than a node changed the database.
 */
export async function verifyStoredChain(store: ChainStore, genesis: Genesis): Promise<ChainHead> {
  const head = await store.head();
  if (head?.genesisHash !== genesis.hash) {
    throw new Error("Block 0 in the database does not have the hash of the genesis that it holds.");
  }
  return head;
}

/**
 * Parses and validates a genesis text.
 *
 * @param path name of the file, for error messages.
 * @throws InputError if the text is not a valid genesis.
 */
export function parseGenesis(path: string, text: string): Genesis {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new InputError(`The genesis file ${path} ${describeJsonError(text)}.`);
  }
  const parsed = genesisFile.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const member = issue?.path.join(".") ?? "";
    throw new InputError(
      `The genesis file ${path} is not usable${member === "" ? "" : ` at ${member}`}: ${issue?.message ?? "wrong shape"}.`,
    );
  }
  const { authorities = [], followers, writers = [], timestamp = 0 } = parsed.data;
  return { text, hash: sha256(text), authorities, followers, writers, timestampMs: timestamp };
}
