/** Keys on the command line: to sign transactions, and to say who reads. */
import { resolve } from "node:path";
import type { IdentityHeaders } from "../../../client/src/identity.js";
import { hex32 } from "../../base/crypto/hash.js";
import { loadNodeKey, type NodeKey } from "../../base/crypto/node-key.js";
import { askSuccessfully } from "../calls/ask-node.js";
import { ExitError, exitCodes } from "../usage/errors.js";
import type { NetworkFlags, ReadFlags } from "../usage/flags.js";

/**
 * The key of a file.
 *
 * @throws ExitError with code 2 when there is none.
 */
export async function loadKey(path: string | undefined): Promise<NodeKey> {
  if (path === undefined) {
    throw new ExitError("--key FILE is needed to sign; make one with: gatehouse keygen --out FILE", exitCodes.usage);
  }
  return await loadNodeKey(resolve(path)).catch((error: unknown) => {
    throw new ExitError(error instanceof Error ? error.message : String(error), exitCodes.usage);
  });
}

/**
 * Hash of the genesis of the network that is named, or that the node says it is of.
 *
 * @throws ExitError when it is none, or the node does not tell it.
 */
export async function networkToSignFor({ node, network }: NetworkFlags): Promise<string> {
  const named = network ?? (JSON.parse(await askSuccessfully(node, "/chain/head")) as ChainHeadBody).genesisHash;
  if (!hex32.test(named)) {
    throw new ExitError(
      `--network must be 0x and 64 lower-case hex digits, not "${named.slice(0, 80)}".`,
      exitCodes.usage,
    );
  }
  return named;
}

interface ChainHeadBody {
  readonly genesisHash: string;
}

/**
 * The headers that prove an identity on one network for the next five minutes.
 *
 * @throws ExitError as {@link networkToSignFor}.
 */
export async function provedIdentity(key: NodeKey, flags: NetworkFlags): Promise<IdentityHeaders> {
  const network = await networkToSignFor(flags);
  // Loaded here: who reads without a key needs none of it.
  const { identityHeaders } = await import("../../../client/src/identity.js");
  return await identityHeaders(key, network);
}

/**
 * Asks a node for what is there, as the holder of the key where one is given.
 *
 * @throws ExitError as {@link networkToSignFor}, and where the node refuses or is not there.
 */
export async function readAs(flags: ReadFlags, path: string): Promise<string> {
  const headers = flags.key === undefined ? {} : await provedIdentity(await loadKey(flags.key), flags);
  return await askSuccessfully(flags.node, path, { headers });
}
