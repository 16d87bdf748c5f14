/**
 * Which nodes may follow: they get whole blocks, and the transactions that wait, whatever the programs in them say of who
 * may read. On an open network that is every node; on a listed one, those that its genesis or this node's operator names.
 */
import { StartError } from "../base/start-error.js";
import type { Genesis } from "../chain/genesis.js";
import type { PeerBook } from "../peers/peer-book.js";
import type { NodeCore } from "./core.js";

/** Whether the node with this key may follow: 0x and 64 lower-case hex digits; undefined where none was proved. */
export type MayFollow = (identity: string | undefined) => boolean;

/**
 * Builds the rule. What the operator adds or removes while the node runs counts at once.
 *
 * @throws StartError where nodes do not prove their keys.
 */
export function createMayFollow(
  { config }: Pick<NodeCore, "config">,
  { genesis, book }: { readonly genesis: Genesis | undefined; readonly book: Pick<PeerBook, "isNamed"> },
): MayFollow {
  if (config.followers === "open") {
    return () => true;
  }
  if (!config.omniTls) {
    throw new StartError("--followers listed needs --omni-tls on: without it nodes do not prove their keys.");
  }
  const ofGenesis = new Set([...(genesis?.authorities ?? []), ...(genesis?.followers ?? [])]);
  return (identity) => identity !== undefined && (ofGenesis.has(identity) || book.isNamed(identity));
}
