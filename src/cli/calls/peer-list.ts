/** Reader of the peer list of a running node. */
import { askSuccessfully } from "./ask-node.js";

/** Peer in the format of /peerlist. */
export interface PeerBody {
  readonly connection: { string: string };
  readonly identity: string;
  readonly verification: { status: boolean; message: string | null };
  readonly sync: { status: boolean; block: number | null };
  readonly status: { online: boolean; timestamp: number | null; ready: boolean };
}

/** Returns all known peers. A long list takes several requests. */
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
