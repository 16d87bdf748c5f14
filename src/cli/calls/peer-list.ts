/** Whom a running node knows. */
import { askSuccessfully } from "./ask-node.js";

/** A peer as /peerlist shows it. */
export interface PeerBody {
  readonly connection: { string: string };
  readonly identity: string;
  readonly verification: { status: boolean; message: string | null };
  readonly sync: { status: boolean; block: number | null };
  readonly status: { online: boolean; timestamp: number | null; ready: boolean };
}

/** All that it knows; a node with very many peers tells them in parts. */
export async function listPeers(node: string): Promise<PeerBody[]> {
  const peers: PeerBody[] = [];
  for (;;) {
    const text = await askSuccessfully(node, `/peerlist?offset=${peers.length}`);
    const part = JSON.parse(text) as PeerBody[];
    if (part.length === 0) {
      return peers;
    }
    peers.push(...part);
  }
}
