/**
 * Which nodes may follow: they get whole blocks, and the transactions that wait, whatever the programs in them say of who
 * may read. On an open network that is every node; on a listed one, those that its genesis or this node's operator names.
 */
import { StartError } from "../../base/errors/start-error.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { Config } from "../../config/config.js";
import type { Queries } from "../../db/queries/database.js";
import type { PeerBook } from "../../peers/address-book/peer-book.js";
import { hasPrivatePrograms } from "../../storage/stores/private-program-store.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Every node, or those that are named. */
export type Followers = "open" | "listed";

/** Whether the node with this key may follow: 0x and 64 lower-case hex digits; undefined where none was proved. */
export type MayFollow = (identity: string | undefined) => boolean;

/** Returns what the operator says; where he says nothing, a genesis that has followers, or an empty list, lists them. */
export function followersOf(
  { followers }: Pick<Config, "followers">,
  genesis: Pick<Genesis, "followers"> | undefined,
): Followers {
  return followers ?? (genesis?.followers === undefined ? "open" : "listed");
}

/**
 * Builds the rule. What the operator adds or removes while the node runs counts at once.
 *
 * @throws StartError where nodes do not prove their keys.
 */
export function createMayFollow(
  { config }: Pick<NodeCore, "config">,
  { genesis, book }: { readonly genesis: Genesis | undefined; readonly book: Pick<PeerBook, "isNamed"> },
): MayFollow {
  if (followersOf(config, genesis) === "open") {
    return () => true;
  }
  if (!config.omniTls) {
    throw new StartError(
      "--followers listed needs --omni-tls on: without it nodes do not prove their keys. It is the default where the " +
        "genesis has followers; --followers open leaves them to what stands before the port.",
    );
  }
  const ofGenesis = new Set([...(genesis?.authorities ?? []), ...(genesis?.followers ?? [])]);
  return (identity) => identity !== undefined && (ofGenesis.has(identity) || book.isNamed(identity));
}

/** Tells that private programs are not kept from nodes, and what to do. */
export const openToAll = {
  found: "There are private programs, and every node may follow, which then has them in the clear.",
  remedy: "Start all nodes of the network with --followers listed, and name those that may follow.",
} as const;

/** Warns where there are private programs on an open network. The start does not wait for it. */
export function warnWhereOpen(
  { config, log, warn, onShutdown: onStop }: Pick<NodeCore, "config" | "log" | "warn" | "onShutdown">,
  { genesis, reads }: { readonly genesis: Genesis | undefined; readonly reads: Pick<Queries, "prepare"> },
): void {
  if (followersOf(config, genesis) === "listed") {
    return;
  }
  const warned = hasPrivatePrograms(reads).then(
    (isSo) => isSo && warn("omni", `${openToAll.found} ${openToAll.remedy}`),
    (error: unknown) => log.warn({ err: error }, "Private programs could not be looked for"),
  );
  onStop("the search for private programs", async () => {
    await warned;
  });
}
