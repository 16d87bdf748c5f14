/**
 * Decides which nodes may follow the chain. A follower gets full blocks and pending transactions, whatever the access
 * rules of the programs say. On an open network every node may follow; on a listed one, only nodes that the genesis or
 * this node's operator names.
 */
import { InputError } from "../../base/errors/start-error.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { Config } from "../../config/config.js";
import type { Queries } from "../../db/queries/database.js";
import type { PeerBook } from "../../peers/address-book/peer-book.js";
import { hasPrivatePrograms } from "../../storage/stores/program-list-store.js";
import type { NodeCore } from "../lifecycle/core.js";

/**
 * Returns the operator's setting. Default: "listed" if the genesis has followers, even an empty list; otherwise "open".
 */
export function followersOf(
  { followers }: Pick<Config, "followers">,
  genesis: Pick<Genesis, "followers"> | undefined,
): "open" | "listed" {
  return followers ?? (genesis?.followers === undefined ? "open" : "listed");
}

export type MayFollow = ReturnType<typeof createMayFollow>;

/**
 * Creates the function that returns true if the node with a key may follow. The key is 0x and 64 lower-case hex digits;
 * undefined if the node has proved none. Changes that the operator makes to the peers apply immediately.
 *
 * @throws InputError if followers are listed but nodes do not prove their keys.
 */
export function createMayFollow(
  { config }: Pick<NodeCore, "config">,
  { genesis, book }: { readonly genesis: Genesis | undefined; readonly book: Pick<PeerBook, "isNamed"> },
): (identity: string | undefined) => boolean {
  if (followersOf(config, genesis) === "open") {
    return () => true;
  }
  if (!config.omniTls) {
    throw new InputError(
      "--followers listed requires --omni-tls on: without TLS, nodes do not prove their keys. Listed is the default if the " +
        "genesis has followers; with --followers open, a proxy in front of the port must restrict access.",
    );
  }
  const listedInGenesis = new Set([...(genesis?.authorities ?? []), ...(genesis?.followers ?? [])]);
  return (identity) => identity !== undefined && (listedInGenesis.has(identity) || book.isNamed(identity));
}

/** Finding and remedy for private programs that every node may read. */
export const openPrograms = {
  found: "There are private programs, and every node may follow the chain and read them.",
  remedy: "Start all nodes of the network with --followers listed, and add the nodes that may follow.",
} as const;

/** Warns if there are private programs on an open network. Does not delay the start. */
export function warnOfOpenPrograms(
  { config, log, warn, onShutdown }: Pick<NodeCore, "config" | "log" | "onShutdown" | "warn">,
  { genesis, reads }: { readonly genesis: Genesis | undefined; readonly reads: Pick<Queries, "prepare"> },
): void {
  if (followersOf(config, genesis) === "listed") {
    return;
  }
  const checked = hasPrivatePrograms(reads).then(
    (hasPrivate) => hasPrivate && warn("omni", `${openPrograms.found} ${openPrograms.remedy}`),
    (error: unknown) => log.warn({ err: error }, "The search for private programs failed"),
  );
  onShutdown("the search for private programs", async () => {
    await checked;
  });
}
