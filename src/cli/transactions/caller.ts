/** Keys of the command line, for signing transactions and for identifying a reader. */
import { resolve } from "node:path";
import type { IdentityHeaders } from "../../../client/src/identity.js";
import { hex32 } from "../../base/crypto/hash.js";
import { loadNodeKey, type NodeKey } from "../../base/crypto/node-key.js";
import { requestOk } from "../calls/request-node.js";
import { ExitError, exitCodes } from "../usage/errors.js";
import type { NetworkFlags, ReadFlags } from "../usage/flags.js";

/**
 * Loads a key from a file.
 *
 * @throws ExitError with code 2 if the file is missing or holds no key.
 */
export async function loadKey(path: string | undefined): Promise<NodeKey> {
  if (path === undefined) {
    throw new ExitError(
      "--key FILE is required to sign; create a key with: gatehouse keygen --out FILE",
      exitCodes.usage,
    );
  }
  return await loadNodeKey(resolve(path)).catch((error: unknown) => {
    throw new ExitError(error instanceof Error ? error.message : String(error), exitCodes.usage);
  });
}

/**
 * Returns the genesis hash of the network given by `--network`, or else reported by the node.
 *
 * @throws ExitError if the hash is malformed, or the node does not report it.
 */
export async function networkToSignFor({ node, network }: NetworkFlags): Promise<string> {
  const genesisHash =
    network ?? (JSON.parse(await requestOk(node, "/chain/head")) as { readonly genesisHash: string }).genesisHash;
  if (!hex32.test(genesisHash)) {
    throw new ExitError(
      `--network must be 0x and 64 lower-case hex digits, not "${genesisHash.slice(0, 80)}".`,
      exitCodes.usage,
    );
  }
  return genesisHash;
}

/**
 * Returns the headers that prove an identity on one network for the next five minutes.
 *
 * @throws ExitError as {@link networkToSignFor}.
 */
export async function provedIdentity(key: NodeKey, flags: NetworkFlags): Promise<IdentityHeaders> {
  const network = await networkToSignFor(flags);
  // Loaded lazily, since reads without a key do not need it.
  const { identityHeaders } = await import("../../../client/src/identity.js");
  return await identityHeaders(key, network);
}

/**
 * Requests a path from a node, as the holder of the key if one is given.
 *
 * @throws ExitError as {@link networkToSignFor}, and if the node rejects the request or is unreachable.
 */
export async function readAs(flags: ReadFlags, path: string): Promise<string> {
  const headers = flags.key === undefined ? {} : await provedIdentity(await loadKey(flags.key), flags);
  return await requestOk(flags.node, path, { headers });
}
