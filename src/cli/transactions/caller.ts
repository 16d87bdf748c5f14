/** Keys of the command line, for signing transactions and for identifying a reader. */
import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { hex32 } from "../../base/crypto/hash.js";
import { loadNodeKey, type NodeKey } from "../../base/crypto/node-key.js";
import { InputError } from "../../base/errors/start-error.js";
import { readEnvironment } from "../../config/variables.js";
import { requestOk } from "../calls/request-node.js";
import { type NetworkFlags, type ReadFlags, variables } from "../usage/flags.js";

/**
 * Loads a key from a file. For an encrypted key, reads the passphrase from a variable or asks for it. Throws InputError
 * if the file is missing or holds no key.
 */
export async function loadKey(path: string | undefined): Promise<NodeKey> {
  if (path === undefined) {
    throw new InputError("--key FILE is required to sign; create a key with: gatehouse keygen --out FILE");
  }
  return await loadNodeKey(resolve(path), () => askPassphrase(path)).catch((error: unknown) => {
    throw new InputError(error instanceof Error ? error.message : String(error));
  });
}

/** Returns the passphrase of a key from the variable, or asks for it in the terminal, which does not show it. */
async function askPassphrase(path: string): Promise<string> {
  const known = readEnvironment()[variables.passphrase];
  if (known !== undefined) {
    return known;
  }
  if (!process.stdin.isTTY) {
    throw new InputError(
      `The key ${path} is encrypted; set ${variables.passphrase} to its passphrase, or run the command in a terminal, which asks for it.`,
    );
  }
  process.stderr.write(`Passphrase of ${path}: `);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: silent, terminal: true });
  try {
    return await terminal.question("");
  } finally {
    terminal.close();
    process.stderr.write("\n");
  }
}

/**
 * Returns the genesis hash of the network given by `--network`, or else reported by the node. Throws InputError if the
 * hash is malformed; ExitError if the node does not report it.
 */
export async function networkToSignFor({ node, network }: NetworkFlags): Promise<string> {
  const genesisHash =
    network ?? (JSON.parse(await requestOk(node, "/chain/head")) as { readonly genesisHash: string }).genesisHash;
  if (!hex32.test(genesisHash)) {
    throw new InputError(`--network must be 0x and 64 lower-case hex digits, not "${genesisHash.slice(0, 80)}".`);
  }
  return genesisHash;
}

/**
 * Returns the headers that prove an identity on one network for the next five minutes; none without `--key`. Throws
 * Errors of {@link loadKey} and {@link networkToSignFor}.
 */
export async function identityOf(
  flags: NetworkFlags & { readonly key?: string },
): Promise<Readonly<Record<string, string>>> {
  if (flags.key === undefined) {
    return {};
  }
  const key = await loadKey(flags.key);
  const network = await networkToSignFor(flags);
  // Loaded lazily, since reads without a key do not need it.
  const { identityHeaders } = await import("../../../client/src/identity.js");
  return await identityHeaders(key, network);
}

/**
 * Requests a path from a node, as the holder of the key if one is given. Throws the errors of {@link identityOf}; ExitError
 * if the node rejects the request or is unreachable.
 */
export async function readAs(flags: ReadFlags, path: string): Promise<string> {
  return await requestOk(flags.node, path, { headers: await identityOf(flags) });
}

/** Returns the hash of a genesis in lowercase. Throws InputError if it is malformed. */
export function parseGenesisHash(flag: string, value: string): string {
  const hash = value.toLowerCase();
  if (!hex32.test(hash)) {
    throw new InputError(`${flag} must be the hash of a genesis, 0x and 64 hex digits, not "${value.slice(0, 80)}".`);
  }
  return hash;
}
