/** Keys on the command line: to sign transactions, and to say who reads. */
import type { Command } from "commander";
import { resolve } from "node:path";
import { identityHeaders, type IdentityHeaders } from "../../client/src/identity.js";
import { hex32 } from "../base/hash.js";
import { loadNodeKey, type NodeKey } from "../base/node-key.js";
import { askSuccessfully } from "./ask-node.js";
import { ExitError } from "./output.js";

/** Adds `--key` to a command. */
export function addKeyFlag(command: Command, description: string): Command {
  return command.addOption(command.createOption("--key <FILE>", description).env("GATEHOUSE_KEY"));
}

/**
 * The key of a file.
 *
 * @throws ExitError with code 2 when there is none.
 */
export async function loadKey(path: string | undefined): Promise<NodeKey> {
  if (path === undefined) {
    throw new ExitError("--key FILE is needed to sign; make one with: gatehouse keygen --out FILE", 2);
  }
  return await loadNodeKey(resolve(path)).catch((error: unknown) => {
    throw new ExitError(error instanceof Error ? error.message : String(error), 2);
  });
}

/** For which network is signed, as a command is told. */
export interface NetworkFlags {
  readonly node: string;
  readonly network?: string | undefined;
}

/** Adds `--network` to a command that signs. */
export function addNetworkFlag(command: Command): Command {
  return command.option(
    "--network <HASH>",
    "The genesis hash of the network to sign for; the one that the node names when left out.",
  );
}

/**
 * Hash of the genesis of the network that is named, or that the node says it is of.
 *
 * @throws ExitError when it is none, or the node does not tell it.
 */
export async function networkToSignFor({ node, network }: NetworkFlags): Promise<string> {
  const named = network ?? (JSON.parse(await askSuccessfully(node, "/chain/head")) as ChainHeadBody).genesisHash;
  if (!hex32.test(named)) {
    throw new ExitError(`--network must be 0x and 64 lower-case hex digits, not "${named.slice(0, 80)}".`, 2);
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
  return await identityHeaders(key, await networkToSignFor(flags));
}
